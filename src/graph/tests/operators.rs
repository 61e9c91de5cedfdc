//! Operators that stand as compositions or on the host, against values worked out by hand or by plain sums.

use super::*;

/// The results of one node.
fn apply(op: &str, operands: &[Tensor], attributes: &[(&str, Attribute)], results: usize) -> Vec<Tensor> {
    let names: Vec<String> = (0..operands.len()).map(|index| format!("in{index}")).collect();
    let outputs: Vec<String> = (0..results).map(|index| format!("out{index}")).collect();
    let mut net = Net::new();
    for (name, tensor) in names.iter().zip(operands) {
        net = net.input(name, tensor.meta().dtype, &vec![-1; tensor.meta().dims.len()]);
    }
    let list = |names: &[String]| names.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    let (inputs, outputs) = (list(&names), list(&outputs));
    let (inputs, outputs): (Vec<&str>, Vec<&str>) =
        (inputs.split(' ').collect(), outputs.split(' ').collect());
    let session = net.node_with(op, &inputs, &outputs, attributes).outputs(&outputs).session();
    run(&session, operands).unwrap()
}

fn ramp(dims: &[usize]) -> Tensor {
    let count = dims.iter().product::<usize>();
    floats(dims, &(0..count).map(|at| (at * 7 % 11) as f32 - 4.0).collect::<Vec<_>>())
}

/// Einsum by its definition: a sum over all letters. Letters stand for axes of the dims given.
fn sums(equation: &str, sizes: &[(char, usize)], operands: &[Tensor]) -> Vec<f64> {
    let (left, right) = equation.split_once("->").unwrap();
    let terms: Vec<&str> = left.split(',').collect();
    let size = |letter: char| sizes.iter().find(|it| it.0 == letter).unwrap().1;
    let values: Vec<Vec<f64>> = operands.iter().map(|it| numbers(it).unwrap()).collect();
    let mut out = vec![0.0; right.chars().map(size).product()];
    for index in 0..sizes.iter().map(|it| it.1).product::<usize>() {
        let mut rest = index;
        let mut places = std::collections::HashMap::new();
        for &(letter, size) in sizes {
            places.insert(letter, rest % size);
            rest /= size;
        }
        let at = |term: &str| term.chars().fold(0, |at, letter| at * size(letter) + places[&letter]);
        out[at(right)] += terms.iter().zip(&values).map(|(term, values)| values[at(term)]).product::<f64>();
    }
    out
}

#[test]
fn einsum_equals_its_definition() {
    let sizes = [('a', 2), ('b', 3), ('c', 4), ('d', 5)];
    let equations = [
        "ab->ab",
        "ab->ba",
        "ab->",
        "aab->ab",
        "abab->ba",
        "aa->a",
        "ab,bc->ac",
        "ab,cb->ca",
        "ba,bc->ac",
        "abc,acd->abd",
        "abc,abd->cd",
        "bca,bda->bcd",
        "a,b->ba",
        "ab,ab->",
        "ab,ab->a",
        "abc,c->ba",
        "a,ab,bc->c",
        "ab,bc,cd->ad",
        "abc,bd,dd->ca",
        "a,,b->ab",
        "ab,cd->",
        "abcd,dcba->abcd",
    ];
    for equation in equations {
        let dims = |term: &str| -> Vec<usize> {
            term.chars().map(|letter| sizes.iter().find(|it| it.0 == letter).unwrap().1).collect()
        };
        let (left, right) = equation.split_once("->").unwrap();
        let operands: Vec<Tensor> = left.split(',').map(|term| ramp(&dims(term))).collect();
        let mut used: Vec<_> = sizes.to_vec();
        used.retain(|it| equation.contains(it.0));
        let got = apply("Einsum", &operands, &[("equation", Attribute::String(equation.into()))], 1);
        assert_eq!(told(&got[0]), (dims(right), sums(equation, &used, &operands)), "{equation}");
    }
}

#[test]
fn einsum_broadcasts_its_ellipsis() {
    let (a, b) = (ramp(&[3, 1, 2, 4]), ramp(&[5, 4, 2]));
    let got = apply(
        "Einsum",
        &[a.clone(), b.clone()],
        &[("equation", Attribute::String("...ij,...ji->...i".into()))],
        1,
    );
    assert_eq!(got[0].meta().dims, [3, 5, 2]);
    let (a, b) = (numbers(&a).unwrap(), numbers(&b).unwrap());
    let mut wanted = Vec::new();
    for (n, m, i) in (0..3).flat_map(|n| (0..5).flat_map(move |m| (0..2).map(move |i| (n, m, i)))) {
        wanted.push((0..4).map(|j| a[(n * 2 + i) * 4 + j] * b[(m * 4 + j) * 2 + i]).sum::<f64>());
    }
    assert_eq!(told(&got[0]).1, wanted);
    let summed = apply("Einsum", &[ramp(&[2, 3])], &[("equation", Attribute::String("...a->a".into()))], 1);
    let values = numbers(&ramp(&[2, 3])).unwrap();
    let columns: Vec<f64> = (0..3).map(|column| values[column] + values[column + 3]).collect();
    assert_eq!(told(&summed[0]).1, columns);
}

#[test]
fn transforms_of_all_routes_agree() {
    // Long lines go through the form on the host, short ones through a product; both directions give back the signal.
    for length in [6usize, 2000] {
        let x: Vec<f64> = (0..3 * length).map(|at| ((at * 29 + 3) % 17) as f64 - 8.0).collect();
        let signal = Tensor::from_slice(DType::F64, [3, length, 1], &x).unwrap();
        let there = apply("DFT", &[signal], &[], 1).swap_remove(0);
        assert_eq!(there.meta().dims, [3, length, 2]);
        let sum: f64 = x[..length].iter().sum();
        assert!((numbers(&there).unwrap()[0] - sum).abs() < 1e-9);
        let back = apply("DFT", &[there], &[("inverse", Attribute::Int(1))], 1);
        for (pair, wanted) in numbers(&back[0]).unwrap().chunks(2).zip(&x) {
            assert!((pair[0] - wanted).abs() < 1e-9 && pair[1].abs() < 1e-9);
        }
    }
}

#[test]
fn norms_of_whole_channels() {
    let x = floats(&[1, 2, 2, 1], &[3.0, -4.0, 1.0, 0.0]);
    let norm = |p| told(&apply("GlobalLpPool", std::slice::from_ref(&x), &[("p", Attribute::Int(p))], 1)[0]);
    assert_eq!(norm(1), (vec![1, 2, 1, 1], vec![7.0, 1.0]));
    assert_eq!(norm(2).1, [5.0, 1.0]);
    assert!((norm(3).1[0] - 91f64.cbrt()).abs() < 1e-5);
}

#[test]
fn slices_that_a_run_picks() {
    let x = ramp(&[2, 3]);
    let condition = Tensor::from_slice(DType::Bool, [3], &[1u8, 0, 1]).unwrap();
    let values = numbers(&x).unwrap();
    let picked = |places: &[usize]| places.iter().map(|&at| values[at]).collect::<Vec<_>>();
    let got = apply("Compress", &[x.clone(), condition.clone()], &[("axis", Attribute::Int(-1))], 1);
    assert_eq!(told(&got[0]), (vec![2, 2], picked(&[0, 2, 3, 5])));
    let got = apply("Compress", &[x.clone(), condition], &[], 1);
    assert_eq!(told(&got[0]), (vec![2], picked(&[0, 2])));
    let got = apply("Unique", &[floats(&[4], &[2.0, -0.0, 0.0, 2.0])], &[], 4);
    assert_eq!(
        got.iter().map(|it| told(it).1).collect::<Vec<_>>(),
        [vec![0.0, 2.0], vec![1.0, 0.0], vec![1.0, 0.0, 0.0, 1.0], vec![2.0, 2.0]]
    );
}

#[test]
fn a_deformed_kernel_without_shifts_is_a_convolution() {
    let (x, w) = (ramp(&[2, 4, 5, 6]), ramp(&[6, 2, 3, 2]));
    let windows = [
        ("pads", Attribute::Ints(vec![1, 0, 1, 1])),
        ("strides", Attribute::Ints(vec![2, 1])),
        ("dilations", Attribute::Ints(vec![1, 2])),
        ("group", Attribute::Int(2)),
    ];
    let plain = apply("Conv", &[x.clone(), w.clone()], &windows, 1);
    let dims = plain[0].meta().dims.clone();
    let shifts = floats(&[2, 2 * 6 * 2, dims[2], dims[3]], &vec![0.0; 2 * 24 * dims[2] * dims[3]]);
    let all = [&windows[..], &[("offset_group", Attribute::Int(2))]].concat();
    assert_eq!(told(&apply("DeformConv", &[x, w, shifts], &all, 1)[0]), told(&plain[0]));
}
