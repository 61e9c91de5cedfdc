//! Aggregations as JavaScript calls.

use super::Result;
use super::bridge::{Bridge, held_by};
use super::input::{InputArg, options_of};
use super::tables::{AttributeRow, attribute_row};
use crate::aggregate::{Aggregation, COMMON, PRES, RULES, Report};
use crate::ops::Attribute;
use crate::runtime::{DeviceName, Round, choose};
use crate::{Error, Result as CoreResult};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::sync::Arc;

/// A rule or a pre-aggregation.
#[napi(object)]
pub struct RuleRow {
    /// Name.
    pub name: String,
    /// What it computes.
    pub doc: String,
    /// What must hold of n rows, f of them hostile; rules only.
    pub bound: Option<String>,
    /// Whether it looks at rows as wholes; rules only.
    pub whole: Option<bool>,
    /// Options that must be given; of several in one text, one.
    pub required: Vec<String>,
    /// Options of its own.
    pub parameters: Vec<AttributeRow>,
}

/// All tables of aggregations.
#[napi(object)]
pub struct AggregateTable {
    /// Rules.
    pub rules: Vec<RuleRow>,
    /// Pre-aggregations.
    pub pres: Vec<RuleRow>,
    /// Options of every rule.
    pub common: Vec<AttributeRow>,
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

fn rows_of(attributes: &[Attribute]) -> Vec<AttributeRow> {
    attributes.iter().map(attribute_row).collect()
}

/// The tables of aggregations.
#[napi]
pub fn aggregate_table() -> AggregateTable {
    let rules = RULES.iter().map(|rule| RuleRow {
        name: rule.name.into(),
        doc: rule.doc.into(),
        bound: Some(rule.bound.text().into()),
        whole: Some(rule.whole),
        required: texts(rule.required),
        parameters: rows_of(rule.parameters),
    });
    let pres = PRES.iter().map(|pre| RuleRow {
        name: pre.name.into(),
        doc: pre.doc.into(),
        bound: None,
        whole: None,
        required: texts(pre.required),
        parameters: rows_of(pre.parameters),
    });
    AggregateTable { rules: rules.collect(), pres: pres.collect(), common: rows_of(COMMON) }
}

/// A row that is not finite.
#[napi(object)]
pub struct NonFiniteRow {
    /// Its number.
    pub row: f64,
    /// Its lowest coordinate that is not finite.
    pub coordinate: f64,
}

/// What an aggregation did, in numbers of rows as they came.
#[napi(object)]
pub struct AggregationReport {
    /// The rule.
    pub rule: String,
    /// Rows given.
    pub n: f64,
    /// Hostile rows reckoned with.
    pub f: f64,
    /// Rows with NaN or infinities.
    pub non_finite: Vec<NonFiniteRow>,
    /// Rows that the NaN policy took out.
    pub dropped: Vec<f64>,
    /// Rows of each bucket.
    pub buckets: Option<Vec<Vec<f64>>>,
    /// Rows chosen.
    pub chosen: Option<Vec<f64>>,
    /// Rows not chosen.
    pub rejected: Option<Vec<f64>>,
    /// Scores.
    pub scores: Option<Vec<f64>>,
    /// Weights.
    pub weights: Option<Vec<f64>>,
    /// Steps.
    pub steps: Option<f64>,
    /// Coordinates of the result that are NaN.
    pub nan_coordinates: f64,
    /// What the caller should know.
    pub notes: Vec<String>,
}

fn numbers(rows: &[usize]) -> Vec<f64> {
    rows.iter().map(|row| *row as f64).collect()
}

impl From<Report> for AggregationReport {
    fn from(report: Report) -> AggregationReport {
        let non_finite = report.non_finite.iter();
        AggregationReport {
            rule: report.rule.into(),
            n: report.n as f64,
            f: report.f as f64,
            non_finite: non_finite
                .map(|&(row, coordinate)| NonFiniteRow { row: row as f64, coordinate: coordinate as f64 })
                .collect(),
            dropped: numbers(&report.dropped),
            buckets: report.buckets.map(|buckets| buckets.iter().map(|rows| numbers(rows)).collect()),
            chosen: report.chosen.as_deref().map(numbers),
            rejected: report.rejected.as_deref().map(numbers),
            scores: report.scores,
            weights: report.weights,
            steps: report.steps.map(|steps| steps as f64),
            nan_coordinates: report.nan_coordinates as f64,
            notes: report.notes,
        }
    }
}

/// An aggregation under way.
#[napi]
#[derive(Default)]
pub struct NativeAggregation {
    round: Arc<Round>,
}

#[napi]
impl NativeAggregation {
    /// One that was not started yet.
    #[napi(constructor)]
    pub fn new() -> NativeAggregation {
        NativeAggregation::default()
    }

    /// The part that is done, 0 to 1.
    #[napi(getter)]
    pub fn progress(&self) -> f64 {
        self.round.progress()
    }

    /// What it did, once it is done.
    #[napi(getter)]
    pub fn report(&self) -> Option<AggregationReport> {
        self.round.report().map(Into::into)
    }
}

/// Rows and a starting point as JavaScript gives them.
#[napi(object, object_to_js = false)]
pub struct AggregateInputs<'a> {
    /// One tensor [n, ...], or n tensors.
    pub rows: Vec<InputArg<'a>>,
    /// Whether each row is a tensor of its own.
    pub list: bool,
    /// The starting point.
    pub start: Option<InputArg<'a>>,
}

impl AggregateInputs<'_> {
    fn call(&self, options: &Object) -> CoreResult<Aggregation> {
        let raw = options_of(options).map_err(|error| Error::InvalidArgument(error.reason.to_string()))?;
        let rows = self.rows.iter().map(InputArg::meta).collect::<CoreResult<Vec<_>>>()?;
        let start = self.start.as_ref().map(InputArg::meta).transpose()?;
        Aggregation::new(&rows, self.list, start.as_ref(), &raw)
    }
}

#[napi]
impl Bridge {
    /// Checks a call without taking anything over. Says where it runs: 'cpu', 'cuda:N', or 'median' for the op of that name on a
    /// GPU. `strict` wants what that op lacks: a report, progress, or a place for the result.
    #[napi]
    pub fn plan_aggregation(
        &self,
        inputs: AggregateInputs,
        options: Object,
        device: String,
        strict: bool,
    ) -> Result<String> {
        let call = inputs.call(&options)?;
        let all: Vec<Option<InputArg>> = inputs.rows.into_iter().chain(inputs.start).map(Some).collect();
        let chosen = choose(&device, held_by(&all)?)?.device;
        if chosen == DeviceName::Cpu {
            return Ok("cpu".into());
        }
        if call.is_median() && !strict {
            return Ok("median".into());
        }
        Ok(chosen.to_string())
    }

    /// Takes the data of a call over and queues it on that device. The result stays there when `keep`.
    #[napi]
    pub fn aggregate(
        &self,
        id: u32,
        aggregation: ClassInstance<NativeAggregation>,
        inputs: AggregateInputs,
        options: Object,
        how: AggregateHow,
    ) -> Result<()> {
        let mut call = inputs.call(&options)?;
        call.reported = how.report;
        let device = choose(&how.device, None)?.device;
        let source = |input: &InputArg| input.source(&input.meta()?, device, how.transfer, self.gate());
        let rows = inputs.rows.iter().map(source).collect::<CoreResult<Vec<_>>>()?;
        let start = inputs.start.as_ref().map(source).transpose()?;
        let round = aggregation.round.clone();
        let place = (device, how.keep);
        self.begin(id, move |cancelled, done| round.submit(call, (rows, start), place, cancelled, done))
    }
}

/// How an aggregation is run.
#[napi(object)]
pub struct AggregateHow {
    /// The device.
    pub device: String,
    /// Whether plain arrays were taken over.
    pub transfer: bool,
    /// Whether the report is wanted.
    pub report: bool,
    /// Whether the result stays on the device.
    pub keep: bool,
}
