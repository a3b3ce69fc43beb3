//! Brings what nobody has asked for yet.

use super::map;
use super::overlay::Overlay;
use evenkeel_op::{Context, Result};
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

const FAILED: &str = "failed to fill the scratch directory";

/// How long filling steps aside at most for each granule while others are served.
const STEPS_ASIDE: u32 = 50;
const STEP_ASIDE: Duration = Duration::from_millis(1);

impl Overlay {
    /// Fetches everything that is missing, one piece after another. `pace` is called with the
    /// bytes of each piece before it is fetched; its error ends the filling. Whoever asks for a
    /// piece meanwhile comes first. Afterwards the origin is not needed any more, and let go.
    pub fn fill(&self, pace: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        // What is made meanwhile is whole from its beginning, so one round is enough.
        let numbers = self.nodes().numbers();
        for number in numbers.into_iter().filter(|number| self.has_map(*number)) {
            match self.open_number(number) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).context(|| FAILED),
                Ok(()) => {
                    let filled = self.fill_file(number, pace);
                    self.release(number);
                    filled?;
                }
            }
        }
        if self.missing() == 0 {
            self.let_go();
        }
        Ok(())
    }

    fn has_map(&self, number: u64) -> bool {
        let nodes = self.nodes();
        let content = nodes
            .get(number)
            .ok()
            .and_then(|node| node.content.as_ref());
        content.is_some_and(|content| content.map.is_some())
    }

    fn fill_file(&self, number: u64, pace: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        let (content, file) = self.opened(number).context(|| FAILED)?;
        let Some(map) = &content.map else {
            return Ok(());
        };
        let mut from = 0;
        while let Some(granule) = map.next_missing(from) {
            let range = map.range(granule);
            pace(range.end - range.start)?;
            self.step_aside();
            let origin = self.origin();
            content.fill(&file, &*origin, granule).context(|| FAILED)?;
            from = granule + 1;
        }
        map::release(&file).context(|| FAILED)
    }

    fn step_aside(&self) {
        for _ in 0..STEPS_ASIDE {
            if self.busy.load(Ordering::Relaxed) == 0 {
                return;
            }
            std::thread::sleep(STEP_ASIDE);
        }
    }
}
