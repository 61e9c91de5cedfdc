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

/// Functions of whole numbers by how many they take.
const WHOLES: &[(&str, usize)] = &[
    ("add", 2),
    ("sub", 2),
    ("mul", 2),
    ("div", 2),
    ("mod", 2),
    ("fmod", 2),
    ("pow", 2),
    ("max", 2),
    ("min", 2),
    ("less", 2),
    ("lessOrEqual", 2),
    ("greater", 2),
    ("greaterOrEqual", 2),
    ("equal", 2),
    ("notEqual", 2),
    ("bitwiseAnd", 2),
    ("bitwiseOr", 2),
    ("bitwiseXor", 2),
    ("prelu", 2),
    ("bitwiseNot", 1),
    ("abs", 1),
    ("neg", 1),
    ("sign", 1),
    ("relu", 1),
    ("clip", 3),
];
const UNSIGNED: &[(&str, usize)] = &[("shiftLeft", 2), ("shiftRight", 2), ("where", 3)];
const NARROW: &[(&str, usize)] = &[("and", 2), ("or", 2), ("xor", 2), ("not", 1)];

fn functions_of(dtype: DType) -> Vec<(&'static str, usize)> {
    if dtype.is_float() {
        return FUNCTIONS.iter().map(|function| (function.name, function.operands)).collect();
    }
    let lists = match dtype.promoted() {
        DType::U32 => &[WHOLES, UNSIGNED, NARROW][..],
        DType::U64 => &[WHOLES, UNSIGNED],
        _ => &[WHOLES],
    };
    lists.concat()
}

#[test]
fn every_function_of_whole_numbers_has_device_functions() {
    for row in crate::DTYPES.iter().filter(|row| !row.dtype.is_float()) {
        for (name, operands) in functions_of(row.dtype) {
            let suffix = row.dtype.promoted().suffix();
            assert_eq!(parameters_of(name, suffix).unwrap(), operands, "{name} {suffix}");
        }
    }
    assert!(parameters_of("where", "i32").is_err() && parameters_of("and", "u64").is_err());
}

fn plans() -> Vec<Plan<'static>> {
    use Access::{Columns, Rows, Scattered, Single, Whole};
    let forms: [(&'static [Access], usize, bool); 6] = [
        (&[Whole, Whole, Whole], 1, true),
        (&[Whole, Single, Whole], 1, true),
        (&[Whole, Rows(0b1), Columns(0b110)], 3, true),
        (&[Rows(0b101), Single, Columns(0b10)], 3, true),
        (&[Whole, Scattered(0b01), Scattered(0b10)], 2, true),
        (&[Whole, Single, Scattered(0b101)], 3, false),
    ];
    let mut plans = Vec::new();
    for row in crate::DTYPES {
        let dtype = row.dtype;
        let steps: Vec<Step> = (0..3).map(Step::Input).chain([Step::Number(0)]).collect();
        let mut every = steps.clone();
        for (name, operands) in functions_of(dtype) {
            let last = every.len() - 1;
            every.push(apply(name, &[last, 1, 2][..operands]));
        }
        let short =
            [steps, vec![apply("mul", &[0, 1]), apply("add", &[4, 2]), apply("clip", &[5, 3, 3])]].concat();
        let (short, every): (&'static [Step], &'static [Step]) = (short.leak(), every.leak());
        let mixed: &'static [DType] = vec![DType::Bool, dtype, dtype].leak();
        let types: [(&'static [DType], DType); 3] =
            [(vec![dtype; 3].leak(), dtype), (mixed, dtype), (mixed, DType::Bool)];
        for (types, result) in types {
            for (index, &(inputs, axes, vectors)) in forms.iter().enumerate() {
                for wide in [false, true] {
                    let lanes = if vectors || !wide { lanes_of(types, result) } else { 1 };
                    let steps = if index == 0 && !wide { every } else { short };
                    plans.push(Plan {
                        steps,
                        element: dtype,
                        result,
                        inputs,
                        types,
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
    }
    // Those of bool are one, whichever operands are.
    let mut bools = 0;
    plans.retain(|plan| {
        bools += usize::from(plan.element == DType::Bool);
        plan.element != DType::Bool || bools <= 2 * forms.len()
    });
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
