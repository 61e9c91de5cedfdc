use super::functions::parameters_of;
use super::*;
use crate::cpu::scalar::FUNCTIONS;

fn apply(name: &'static str, operands: &[usize]) -> Step {
    Step::Apply(name, operands.to_vec())
}

#[test]
fn every_function_has_a_device_function() {
    for function in FUNCTIONS {
        for suffix in ["f32", "f64"] {
            // Unary ones take the op's attributes too.
            let wanted = if function.operands == 1 { 3 } else { function.operands };
            assert_eq!(parameters_of(function.name, suffix).unwrap(), wanted, "{} {suffix}", function.name);
        }
    }
    assert!(parameters_of("relu", "f16").is_err());
}

fn plans() -> Vec<Plan<'static>> {
    use Access::{Columns, Rows, Scattered, Single, Whole};
    let steps: Vec<Step> = (0..3).map(Step::Input).chain([Step::Number(0)]).collect();
    let mut every = steps.clone();
    for function in FUNCTIONS {
        let last = every.len() - 1;
        every.push(apply(function.name, &[last, 1, 2][..function.operands]));
    }
    let short =
        [steps, vec![apply("mul", &[0, 1]), apply("add", &[4, 2]), apply("clip", &[5, 3, 3])]].concat();
    let (short, every): (&'static [Step], &'static [Step]) = (short.leak(), every.leak());
    let forms: [(&'static [Access], usize, bool); 6] = [
        (&[Whole, Whole, Whole], 1, true),
        (&[Whole, Single, Whole], 1, true),
        (&[Whole, Rows(0b1), Columns(0b110)], 3, true),
        (&[Rows(0b101), Single, Columns(0b10)], 3, true),
        (&[Whole, Scattered(0b01), Scattered(0b10)], 2, true),
        (&[Whole, Single, Scattered(0b101)], 3, false),
    ];
    let mut plans = Vec::new();
    for dtype in [DType::F32, DType::F64, DType::F16, DType::Bf16] {
        for (index, &(inputs, axes, vectors)) in forms.iter().enumerate() {
            for wide in [false, true] {
                let steps = if index == 0 && !wide { every } else { short };
                let lanes = if vectors || !wide { 16 / dtype.size() } else { 1 };
                plans.push(Plan {
                    steps,
                    dtype,
                    inputs,
                    numbers: 1,
                    axes,
                    lanes,
                    vectors,
                    wide,
                    paired: wide,
                });
            }
        }
    }
    plans
}

#[test]
fn kernels_are_whole_and_their_keys_differ() {
    let mut keys = std::collections::HashSet::new();
    for plan in plans() {
        let kernel = generate(&plan).unwrap();
        assert!(keys.insert(plan.key()), "{}", plan.key());
        if let Ok(folder) = std::env::var("WARPWRIGHT_DUMP") {
            std::fs::write(format!("{folder}/fused-{}.ptx", keys.len()), &kernel.ptx).unwrap();
        }
        let (_, entry) = kernel.ptx.split_once(".visible .entry ").unwrap();
        let (list, body) = entry.split_once("\n)\n").unwrap();
        assert_eq!(list.matches(".param ").count(), kernel.parameters.len());
        assert!(!body.contains(".visible ") && !body.contains("function_"), "a parameter was left");
        assert_eq!(kernel.ptx.matches('{').count(), kernel.ptx.matches('}').count());
    }
}
