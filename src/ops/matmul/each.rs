//! Products that other ops make of their operands: a matrix by each of several.

use super::cuda::{self, Job};
use super::split::Pointers;
use super::{BatchAxis, LARGEST, Product};
use crate::Result;
use crate::driver::DevicePtr;
use crate::kernels::Launcher;
use crate::ops::activation::Activation;
use crate::ops::{OpSpec, Precision};
use crate::tensor::DeviceView;

/// Products of one matrix.
#[derive(Debug, Clone, Copy)]
pub enum Each {
    /// A matrix of `rows` by `terms` times each of `count` matrices of `terms` by `columns`; the bias has an element a row.
    Right { rows: usize, terms: usize, columns: usize, count: usize },
    /// Rows of `terms` times the transpose of a matrix of `columns` by `terms`; the bias has an element a column.
    Rows { rows: usize, terms: usize, columns: usize },
}

impl Each {
    fn product(self, bias: bool) -> Product {
        let bias = usize::from(bias);
        match self {
            Each::Right { rows, terms, columns, count } => Product {
                dims: [count, rows, columns].into(),
                m: rows,
                n: columns,
                k: terms,
                transposed_a: false,
                transposed_b: false,
                pitch_a: terms,
                pitch_b: columns,
                c: None,
                bias: (bias, 0),
                batch: match count {
                    1 => Vec::new(),
                    size => vec![BatchAxis { size, a: 0, b: terms * columns, c: 0 }],
                },
            },
            Each::Rows { rows, terms, columns } => Product {
                dims: [rows, columns].into(),
                m: rows,
                n: columns,
                k: terms,
                transposed_a: false,
                transposed_b: true,
                pitch_a: terms,
                pitch_b: terms,
                c: None,
                bias: (0, bias),
                batch: Vec::new(),
            },
        }
    }
}

/// Such a product with its operands on the device.
pub struct EachJob<'a>(Job<'a>);

impl<'a> EachJob<'a> {
    /// act(a * b + bias) into `d`. `None` for larger products than the kernels take.
    pub fn new(
        launcher: &'a Launcher,
        each: Each,
        views: [DeviceView<'a>; 2],
        bias: DevicePtr,
        d: DevicePtr,
        activation: Activation,
        precision: Precision,
    ) -> Option<EachJob<'a>> {
        let product = each.product(bias != DevicePtr::NULL);
        let sizes = [product.m, product.n, product.k, product.batch_count()];
        if sizes.into_iter().any(|size| size > LARGEST) {
            return None;
        }
        let at = Pointers { a: views[0].ptr, b: views[1].ptr, c: DevicePtr::NULL, bias, d };
        let types = (views[0].dtype, views[0].dtype);
        Some(EachJob(Job {
            launcher,
            product,
            at,
            views,
            types,
            alpha: 1.0,
            beta: 0.0,
            activation,
            precision,
        }))
    }

    /// Microseconds that are expected; `None` where that is not known.
    pub fn time(&self) -> Result<Option<f64>> {
        cuda::expected(&self.0)
    }

    /// Enqueues it, in float32 or float64.
    pub fn run(&self, spec: &OpSpec) -> Result<()> {
        cuda::run_wide(spec, &self.0)
    }

    /// Enqueues it in 16 bits; `false` where it is not taken, or the device lacks the memory or its driver the tensor maps.
    pub fn run_half(&self) -> Result<bool> {
        super::half::run(&self.0)
    }
}
