//! Which default schema a session has, as the plan follows it.

use super::super::step::{Step, What};
use super::Planner;
use crate::Statement;
use evenkeel_op::Result;

impl Planner {
    /// Gives the session the default schema that the statement ran in.
    pub(super) fn follow_schema(&mut self, one: &Statement<'_>) -> Result<()> {
        match one.schema.filter(|schema| !schema.is_empty()) {
            Some(schema) if self.session(one).schema.as_deref() != Some(schema) => {
                self.set_schema(one, schema)
            }
            None if self.session(one).schema.is_none() => {
                match self.choice.default_schema.clone() {
                    Some(schema) => self.set_schema(one, &schema),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    pub(super) fn set_schema(&mut self, one: &Statement<'_>, schema: &str) -> Result<()> {
        self.session(one).schema = Some(schema.to_owned());
        let mapped = self.choice.schemas.get(schema).cloned();
        if mapped.is_some() && !self.mapped.contains(schema) {
            self.mapped.insert(schema.to_owned());
        }
        let step = Step {
            at_ns: one.at_ns,
            what: What::Schema,
            ..Step::default()
        };
        self.step(one, &step, mapped.as_deref().unwrap_or(schema).as_bytes())
    }
}
