//! Pages as a browser shows them: headless Chromium, which reaches no network.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// How wide pages are shown: on a screen, and on a telephone.
pub const WIDTHS: [u32; 2] = [1280, 390];

/// Each page stands in frames, which may be narrower than a browser's window. What was measured is written into the
/// document.
const FRAME: &str = r#"<!DOCTYPE html><html><body style="margin:0">
FRAMES
<script>
function inside(inner, outer) {
  return inner.left >= outer.left - 1 && inner.right <= outer.right + 1
    && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
}
function meet(a, b) {
  const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  // Lines of text have room above and below their letters.
  return x > 2 && y > 0.35 * Math.min(a.height, b.height);
}
function measure(frame) {
  const page = frame.contentDocument, problems = [];
  const root = page.documentElement;
  if (root.scrollWidth > root.clientWidth)
    problems.push(`the page is ${root.scrollWidth} wide in ${root.clientWidth}`);
  const figures = page.querySelectorAll("figure svg");
  for (const svg of figures) {
    const outer = svg.getBoundingClientRect();
    if (outer.width < 100 || outer.height < 50)
      problems.push(`a figure of ${outer.width} x ${outer.height}`);
    const texts = [...svg.querySelectorAll("text")].filter(one => one.textContent.trim());
    const boxes = texts.map(one => one.getBoundingClientRect());
    texts.forEach((one, i) => {
      if (!inside(boxes[i], outer)) problems.push(`beyond its figure: ${one.textContent.trim()}`);
      for (let j = i + 1; j < texts.length; j++)
        if (meet(boxes[i], boxes[j]))
          problems.push(`one on the other: ${one.textContent.trim()} | ${texts[j].textContent.trim()}`);
    });
  }
  return {
    problems, figures: figures.length, title: page.querySelector("h1")?.textContent ?? "",
    is_dark: frame.contentWindow.matchMedia("(prefers-color-scheme: dark)").matches,
    fetched: frame.contentWindow.performance.getEntriesByType("resource").map(one => one.name),
    page: frame.dataset.page, width: frame.clientWidth, height: root.scrollHeight,
  };
}
onload = () => {
  const all = [...document.querySelectorAll("iframe")].map(measure);
  document.documentElement.dataset.measured = encodeURIComponent(JSON.stringify(all));
};
</script></body></html>"#;

/// Opens pages that lie in one directory, each at each width, and returns what was measured of each: `page`, `width`,
/// `problems`, `figures`, `title`, `is_dark`, `fetched`, `height`.
///
/// Screenshots are made where `EVENKEEL_SCREENSHOTS` names a directory.
#[track_caller]
#[must_use]
pub fn open(directory: &Path, pages: &[&str], is_dark: bool) -> Vec<Value> {
    let document = framed(directory, &frames(pages));
    let output = chromium(directory, &document, is_dark, (1300, 900), &["--dump-dom"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let console: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect();
    assert!(console.is_empty(), "{console:?}");
    let dumped = String::from_utf8_lossy(&output.stdout);
    let measured = dumped.split("data-measured=\"").nth(1);
    let measured = measured.and_then(|rest| rest.split('"').next());
    let measured = measured.unwrap_or_else(|| panic!("nothing was measured: {said}\n{dumped}"));
    let measured: Vec<Value> = serde_json::from_slice(&decoded(measured)).expect("JSON");
    if let Some(shots) = std::env::var_os("EVENKEEL_SCREENSHOTS") {
        for one in &measured {
            shoot(directory, one, is_dark, Path::new(&shots));
        }
    }
    measured
}

fn frame(page: &str, width: impl std::fmt::Display, height: impl std::fmt::Display) -> String {
    format!(
        "<iframe style=\"border:0;width:{width}px;height:{height}px\" data-page=\"{page}\" \
         src=\"{page}\"></iframe>\n"
    )
}

fn frames(pages: &[&str]) -> String {
    let all = pages
        .iter()
        .flat_map(|page| WIDTHS.map(|width| frame(page, width, 900)));
    all.collect()
}

/// Writes the document around frames beside the pages.
fn framed(directory: &Path, frames: &str) -> PathBuf {
    let document = directory.join("frames.html");
    fs::write(&document, FRAME.replace("FRAMES", frames)).expect("a document");
    document
}

fn shoot(directory: &Path, measured: &Value, is_dark: bool, shots: &Path) {
    let page = measured["page"].as_str().unwrap_or_default();
    let number = |name: &str| measured[name].as_u64().unwrap_or(900);
    let (width, height) = (number("width"), number("height"));
    let document = framed(directory, &frame(page, width, height));
    let shade = if is_dark { "dark" } else { "light" };
    let name = format!("{}-{width}-{shade}.png", page.trim_end_matches(".html"));
    let word = format!("--screenshot={}", shots.join(name).display());
    let _ = chromium(
        directory,
        &document,
        is_dark,
        (width.max(500), height),
        &[&word],
    );
}

fn chromium(
    directory: &Path,
    document: &Path,
    is_dark: bool,
    (width, height): (u64, u64),
    words: &[&str],
) -> Output {
    let scheme = if is_dark { 0 } else { 1 };
    let profile = directory.join("profile");
    let mut command = Command::new("chromium");
    command
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ])
        .args([
            "--no-first-run",
            "--disable-dev-shm-usage",
            "--disable-extensions",
        ])
        .args([
            "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND",
        ])
        .args(["--allow-file-access-from-files", "--enable-logging=stderr"])
        .args([
            "--virtual-time-budget=5000",
            "--force-device-scale-factor=1",
        ])
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .env("HOME", directory)
        .args(words)
        .arg(format!("file://{}", document.display()));
    let output = command
        .output()
        .expect("chromium, which testkit/setup installs");
    assert!(output.status.success(), "{output:?}");
    output
}

/// Undoes `encodeURIComponent`.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%');
        let hex = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(hex.unwrap_or(*first));
        rest = if hex.is_some() { &after[2..] } else { after };
    }
    bytes
}
