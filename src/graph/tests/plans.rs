//! What plans hold, and where they end to be told something.

use super::*;
use crate::graph::plan::{End, Stage, Told};
use crate::ops::Meta;

fn stage(session: &Session, metas: &[Meta]) -> Arc<Stage> {
    session.stage(metas).unwrap()
}

fn names(stage: &Stage) -> Vec<&str> {
    stage.steps.iter().map(|step| step.name).collect()
}

fn branches() -> Session {
    let branch = |op| Net::new().capture("x", 0).node(op, &["x"], &["y"]).outputs(&["y"]).into_attribute();
    Net::new()
        .input("x", DType::F32, &[2])
        .input("condition", DType::Bool, &[])
        .node_with(
            "If",
            &["condition"],
            &["chosen"],
            &[("then_branch", branch("Relu")), ("else_branch", branch("Neg"))],
        )
        .node("Abs", &["chosen"], &["size"])
        .outputs(&["chosen", "size"])
        .session()
}

#[test]
fn a_condition_that_a_run_tells_leads_to_either_branch() {
    let session = branches();
    let x = floats(&[2], &[-1.0, 2.0]);
    for (condition, wanted) in [(true, [0.0, 2.0]), (false, [1.0, -2.0]), (true, [0.0, 2.0])] {
        let results = run(&session, &[x.clone(), truth(condition)]).unwrap();
        assert_eq!(told(&results[0]).1, wanted);
        assert_eq!(told(&results[1]).1, wanted.map(f64::abs));
    }
    assert_eq!(session.plans(), 1);
    let metas = [Meta::new(DType::F32, [2]), Meta::new(DType::Bool, [])];
    let first = stage(&session, &metas);
    assert!(first.steps.is_empty() && matches!(first.end, End::Value(1)));
    let next = |condition| first.next(Told::Value(1, truth(condition))).unwrap();
    assert_eq!(names(&next(true)), ["relu", "abs"]);
    assert_eq!(names(&next(false)), ["neg", "abs"]);
    // What follows a value is planned once.
    assert!(Arc::ptr_eq(&next(true), &next(true)));
}

#[test]
fn a_condition_that_dims_tell_costs_nothing() {
    let branch = |op| Net::new().capture("x", 0).node(op, &["x"], &["y"]).outputs(&["y"]).into_attribute();
    let session = Net::new()
        .input("x", DType::F32, &[-1])
        .node("Shape", &["x"], &["dims"])
        .node_with("Cast", &["dims"], &["condition"], &[("to", Attribute::Int(9))])
        .node_with(
            "If",
            &["condition"],
            &["y"],
            &[("then_branch", branch("Relu")), ("else_branch", branch("Neg"))],
        )
        .outputs(&["y"])
        .session();
    for (length, op) in [(3, "relu"), (0, "neg")] {
        let stage = stage(&session, &[Meta::new(DType::F32, [length])]);
        assert_eq!(names(&stage), [op]);
        assert!(matches!(stage.end, End::Results(_)));
    }
    assert_eq!(session.plans(), 2);
}

fn doubling() -> Session {
    // Twice the sum so far, and the sums on the way; x and its number are captured.
    let body = Net::new()
        .input("number", DType::I64, &[])
        .input("going", DType::Bool, &[])
        .input("sum", DType::F32, &[2])
        .capture("x", 0)
        .node("Add", &["sum", "x"], &["next"])
        .node("Identity", &["going"], &["still"])
        .outputs(&["still", "next", "sum"]);
    let mut body = body;
    let kept = body.graph.outputs[2].index();
    body.graph.values[kept].declared = Some(Declared { dtype: DType::F32, dims: Some(vec![Dim::Fixed(2)]) });
    Net::new()
        .input("x", DType::F32, &[2])
        .input("count", DType::I64, &[])
        .node("Neg", &["x"], &["start"])
        .node_with("Loop", &["count", "", "start"], &["last", "sums"], &[("body", body.into_attribute())])
        .outputs(&["last", "sums"])
        .session()
}

#[test]
fn a_loop_runs_as_often_as_a_run_tells() {
    let session = doubling();
    let x = floats(&[2], &[1.0, -3.0]);
    for count in [3, 0, 1, 3] {
        let results = run(&session, &[x.clone(), longs(&[], &[count])]).unwrap();
        let times = count as f64 - 1.0;
        assert_eq!(told(&results[0]), (vec![2], vec![times, -3.0 * times]));
        let sums: Vec<f64> = (0..count).flat_map(|it| [it as f64 - 1.0, 3.0 - 3.0 * it as f64]).collect();
        assert_eq!(told(&results[1]), (vec![count as usize, 2], sums));
    }
    let first = stage(&session, &[Meta::new(DType::F32, [2]), Meta::new(DType::I64, [])]);
    assert_eq!(names(&first), ["neg"]);
    assert!(matches!(first.end, End::Value(1)));
    let next = first.next(Told::Value(1, longs(&[], &[2]))).unwrap();
    assert_eq!(names(&next), ["add", "add", "concat"]);
}

#[test]
fn a_loop_ends_when_its_condition_does() {
    // Halves the value and stops where it has become 0.
    let body = Net::new()
        .input("number", DType::I64, &[])
        .input("going", DType::Bool, &[])
        .input("value", DType::F32, &[1])
        .capture("half", 1)
        .node("Mul", &["value", "half"], &["less"])
        .node("Floor", &["less"], &["next"])
        .node_with("Cast", &["next"], &["still"], &[("to", Attribute::Int(9))])
        .outputs(&["still", "next", "next"]);
    let session = Net::new()
        .input("x", DType::F32, &[1])
        .constant("half", floats(&[], &[0.5]))
        .node_with("Loop", &["", "", "x"], &["last", "all"], &[("body", body.into_attribute())])
        .outputs(&["all"])
        .session();
    let results = run(&session, &[floats(&[1], &[9.0])]).unwrap();
    assert_eq!(told(&results[0]), (vec![4, 1], vec![4.0, 2.0, 1.0, 0.0]));
}

#[test]
fn dims_that_elements_decide_are_told_by_the_run() {
    let session = Net::new()
        .input("x", DType::F32, &[2, 2])
        .constant("flat", longs(&[1], &[-1]))
        .node("NonZero", &["x"], &["places"])
        .node("Transpose", &["places"], &["rows"])
        .node("Reshape", &["rows", "flat"], &["list"])
        .outputs(&["list"])
        .session();
    let cases = [
        ([0.0, 1.0, 2.0, 0.0], vec![0.0, 1.0, 1.0, 0.0]),
        ([0.0; 4], vec![]),
        ([0.0, 0.0, 0.0, 5.0], vec![1.0, 1.0]),
    ];
    for (x, wanted) in cases {
        let results = run(&session, &[floats(&[2, 2], &x)]).unwrap();
        assert_eq!(told(&results[0]), (vec![wanted.len()], wanted));
    }
    let first = stage(&session, &[Meta::new(DType::F32, [2, 2])]);
    assert_eq!(names(&first), ["nonZero"]);
    let End::Dims(slots) = &first.end else { panic!("the plan goes on without the dims") };
    let next = first.next(Told::Dims(vec![(slots[0], Meta::new(DType::I64, [2, 3]))])).unwrap();
    assert_eq!(names(&next), ["transpose"]);
}

#[test]
fn arithmetic_of_dims_leaves_no_step() {
    let session = Net::new()
        .input("x", DType::F32, &[-1, -1, -1])
        .constant("first", longs(&[1], &[0]))
        .constant("free", longs(&[1], &[-1]))
        .node("Shape", &["x"], &["dims"])
        .node("Gather", &["dims", "first"], &["batch"])
        .node_with("Concat", &["batch", "free"], &["wanted"], &[("axis", Attribute::Int(0))])
        .node("Reshape", &["x", "wanted"], &["y"])
        .node("Size", &["y"], &["count"])
        .outputs(&["y", "count"])
        .session();
    let metas = [Meta::new(DType::F32, [2, 3, 4])];
    let stage = stage(&session, &metas);
    assert!(stage.steps.is_empty());
    let End::Results(results) = &stage.end else { panic!("the plan does not end") };
    assert_eq!(results[0].dims(), [2, 12]);
    assert_eq!(numbers(results[1].known().unwrap()).unwrap(), [24.0]);
    let x = floats(&[2, 3, 4], &[1.5; 24]);
    assert_eq!(told(&run(&session, &[x]).unwrap()[0]), (vec![2, 12], vec![1.5; 24]));
}

#[test]
fn constants_are_worked_out_once_for_all_plans() {
    let session = Net::new()
        .input("x", DType::F32, &[-1, 1])
        .constant("w", floats(&[1, 4096], &[2.0; 4096]))
        .node("Neg", &["w"], &["v"])
        .node("Add", &["x", "v"], &["y"])
        .outputs(&["y"])
        .session();
    let folded = |rows: usize| {
        let stage = stage(&session, &[Meta::new(DType::F32, [rows, 1])]);
        assert_eq!(names(&stage), ["add"]);
        stage.steps[0].inputs[1].as_ref().unwrap().known().unwrap().identity()
    };
    assert_eq!(folded(1), folded(2));
}

#[test]
fn slots_are_dead_after_their_last_use() {
    let session = Net::new()
        .input("x", DType::F32, &[2])
        .node_with("Concat", &["x", "x"], &["a"], &[("axis", Attribute::Int(0))])
        .node_with("Softmax", &["a"], &["b"], &[("axis", Attribute::Int(0))])
        .node_with("Concat", &["a", "b"], &["c"], &[("axis", Attribute::Int(0))])
        .node("ReduceMax", &["a"], &["unread"])
        .node("Split", &["c"], &["unwanted", "y"])
        .outputs(&["y", "b"])
        .session();
    let stage = stage(&session, &[Meta::new(DType::F32, [1])]);
    // Slots by name: x 0, a 1, b 2, c 3, unread 4, unwanted 5, y 6.
    assert_eq!(names(&stage), ["concat", "softmax", "concat", "split"]);
    let mut dead = stage.dead.clone();
    dead.iter_mut().for_each(|slots| slots.sort());
    assert_eq!(dead, [vec![0], vec![], vec![1], vec![3, 5]]);
    let results = run(&session, &[floats(&[1], &[-1.0])]).unwrap();
    assert_eq!(told(&results[0]).1, [0.5, 0.5]);
    assert_eq!(told(&results[1]).1, [0.5, 0.5]);
}

#[test]
fn slots_that_a_later_stage_reads_stay() {
    let session = Net::new()
        .input("x", DType::F32, &[3])
        .node("Neg", &["x"], &["negated"])
        .node("Exp", &["x"], &["unread"])
        .node("NonZero", &["x"], &["places"])
        .node("Abs", &["negated"], &["size"])
        .outputs(&["size", "places"])
        .session();
    let first = stage(&session, &[Meta::new(DType::F32, [3])]);
    assert_eq!(names(&first), ["neg", "nonZero"]);
    assert_eq!(first.dead, [vec![], vec![0]]);
    // Only what is read later is held, and what a branch does not read goes when it begins.
    let session = branches();
    let metas = [Meta::new(DType::F32, [2]), Meta::new(DType::Bool, [])];
    let next = stage(&session, &metas).next(Told::Value(1, truth(true))).unwrap();
    assert_eq!((&next.left, &next.dead), (&vec![1], &vec![vec![0], vec![]]));
    let session = Net::new()
        .input("x", DType::F32, &[3])
        .node("NonZero", &["x"], &["places"])
        .node("Shape", &["places"], &["count"])
        .outputs(&["count"])
        .session();
    let first = stage(&session, &[Meta::new(DType::F32, [3])]);
    let next = first.next(Told::Dims(vec![(1, Meta::new(DType::I64, [1, 2]))])).unwrap();
    assert_eq!((&first.dead, &next.left), (&vec![vec![0]], &vec![1]));
    let results = run(&session, &[floats(&[3], &[1.0, 0.0, -2.0])]).unwrap();
    assert_eq!(told(&results[0]).1, [1.0, 2.0]);
}

#[test]
fn later_stages_have_what_they_read() {
    let session = Net::new()
        .input("x", DType::F32, &[3])
        .node("Neg", &["x"], &["negated"])
        .node("NonZero", &["x"], &["places"])
        .node("Abs", &["negated"], &["size"])
        .outputs(&["size", "places"])
        .session();
    let results = run(&session, &[floats(&[3], &[1.0, 0.0, -2.0])]).unwrap();
    assert_eq!(told(&results[0]).1, [1.0, 0.0, 2.0]);
    assert_eq!(told(&results[1]), (vec![1, 2], vec![0.0, 2.0]));
}

#[test]
fn a_scan_walks_both_ways_and_by_batches() {
    let body = || {
        Net::new()
            .input("sum", DType::F32, &[2])
            .input("next", DType::F32, &[2])
            .capture("bias", 0)
            .node("Add", &["sum", "next"], &["plain"])
            .node("Add", &["plain", "bias"], &["new"])
            .outputs(&["new", "new"])
            .into_attribute()
    };
    let scan = |version: i64, attributes: &[(&str, Attribute)], inputs: &[&str]| {
        let mut all = vec![("body", body()), ("num_scan_inputs", Attribute::Int(1))];
        all.extend_from_slice(attributes);
        Net::of_version(version)
            .constant("bias", floats(&[], &[10.0]))
            .input("start", DType::F32, &[-1; 2][..if version == 8 { 2 } else { 1 }])
            .input("x", DType::F32, &[-1; 3][..if version == 8 { 3 } else { 2 }])
            .node_with("Scan", inputs, &["last", "sums"], &all)
            .outputs(&["last", "sums"])
            .session()
    };
    let back = [
        ("scan_input_directions", Attribute::Ints(vec![1])),
        ("scan_output_directions", Attribute::Ints(vec![1])),
    ];
    let x = floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let results = run(&scan(9, &back, &["start", "x"]), &[floats(&[2], &[0.0, 0.0]), x.clone()]).unwrap();
    assert_eq!(told(&results[0]).1, [24.0, 26.0]);
    assert_eq!(told(&results[1]), (vec![2, 2], vec![24.0, 26.0, 13.0, 14.0]));
    let session = scan(8, &[], &["", "start", "x"]);
    let start = floats(&[2, 2], &[0.0, 0.0, 100.0, 200.0]);
    let x = floats(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
    let results = run(&session, &[start, x]).unwrap();
    assert_eq!(told(&results[0]), (vec![2, 2], vec![24.0, 26.0, 124.0, 226.0]));
    assert_eq!(told(&results[1]).0, [2, 2, 2]);
    assert_eq!(told(&results[1]).1, [11.0, 12.0, 24.0, 26.0, 111.0, 212.0, 124.0, 226.0]);
}
