//! What sessions refuse, and how they say it.

use super::*;
use crate::Error;

fn relu() -> Session {
    Net::new()
        .input("image", DType::F32, &[-1, 3])
        .input("mask", DType::Bool, &[])
        .node("Relu", &["image"], &["y"])
        .outputs(&["y"])
        .session()
}

#[test]
fn feeds_are_checked_by_name_type_and_dims() {
    let session = relu();
    let good = || vec![("mask".to_string(), truth(true)), ("image".to_string(), floats(&[2, 3], &[1.0; 6]))];
    let checked = session.check_feeds(good()).unwrap();
    assert_eq!(checked[0].meta().dims, [2, 3]);
    assert_eq!(checked[1].meta().dtype, DType::Bool);
    let cases: [(&str, &str, Option<Tensor>, &str, &str); 6] = [
        ("image", "image", None, "INVALID_ARGUMENT", "'image' is missing"),
        ("image", "imag", Some(floats(&[1, 3], &[0.0; 3])), "INVALID_ARGUMENT", "did you mean 'image'?"),
        ("image", "x", Some(floats(&[1, 3], &[0.0; 3])), "INVALID_ARGUMENT", "image, mask"),
        ("image", "image", Some(longs(&[1, 3], &[0; 3])), "INVALID_ARGUMENT", "must be float32, got int64"),
        ("image", "image", Some(floats(&[3], &[0.0; 3])), "SHAPE_MISMATCH", "rank 2, got dims [3]"),
        (
            "image",
            "image",
            Some(floats(&[3, 1], &[0.0; 3])),
            "SHAPE_MISMATCH",
            "dim 1 of input 'image' must be 3",
        ),
    ];
    for (replaced, name, tensor, code, text) in cases {
        let mut feeds = good();
        feeds.retain(|(name, _)| name != replaced);
        feeds.extend(tensor.map(|tensor| (name.to_string(), tensor)));
        let error = session.check_feeds(feeds).err().unwrap();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
    // The next valid run works.
    assert_eq!(told(&session.run(checked, &|| Ok(())).unwrap()[0]).1, [1.0; 6]);
}

#[test]
fn one_error_names_all_unknown_operators() {
    let inner = Net::new().node("Inner", &[], &["z"]).outputs(&["z"]);
    let mut net = Net::new()
        .input("x", DType::F32, &[2])
        .input("condition", DType::Bool, &[])
        .node("Relu", &["x"], &["a"])
        .node("Strange", &["a"], &["b"])
        .node("Strange", &["b"], &["c"])
        .node_with(
            "If",
            &["condition"],
            &["d"],
            &[("then_branch", inner.into_attribute()), ("else_branch", Net::new().into_attribute())],
        )
        .node("Relu", &["c"], &["e"])
        .outputs(&["e"]);
    net.graph.nodes[4].domain = "com.example".into();
    let error = Session::new(net.graph, None, Options::default()).err().unwrap();
    assert_eq!(error.code(), "UNSUPPORTED_OP");
    let text = error.to_string();
    assert!(
        text.ends_with("Inner (version 21), Strange (version 21), com.example.Relu (version 21)"),
        "{text}"
    );
}

#[test]
fn errors_name_the_node() {
    let session = Net::new()
        .input("x", DType::F32, &[-1])
        .input("index", DType::I64, &[])
        .node("Gather", &["x", "index"], &["y"])
        .outputs(&["y"])
        .session();
    // Found by the plan.
    let error = run(&session, &[floats(&[], &[1.0]), longs(&[], &[0])]).err().unwrap();
    assert!(error.to_string().starts_with("model: node 'Gather_0' (Gather): gather: axis"), "{error}");
    // Found by the run.
    let x = floats(&[3], &[1.0, 2.0, 3.0]);
    let error = run(&session, &[x.clone(), longs(&[], &[3])]).err().unwrap();
    assert_eq!(error.code(), "OUT_OF_RANGE");
    assert!(error.to_string().starts_with("node 'Gather_0' (Gather): gather:"), "{error}");
    assert_eq!(told(&run(&session, &[x, longs(&[], &[-1])]).unwrap()[0]).1, [3.0]);
}

#[test]
fn values_keep_within_the_limit() {
    let net = Net::new()
        .input("x", DType::F32, &[-1])
        .node_with("Concat", &["x", "x"], &["y"], &[("axis", Attribute::Int(0))])
        .outputs(&["y"]);
    let options = Options { tensor_bytes: 64, ..Options::default() };
    let session = Session::new(net.graph, None, options).unwrap();
    assert!(run(&session, &[floats(&[8], &[1.0; 8])]).is_ok());
    let error = run(&session, &[floats(&[9], &[1.0; 9])]).err().unwrap();
    assert_eq!(error.code(), "MEMORY_LIMIT");
    assert!(error.to_string().contains("72 bytes, which passes maxTensorBytes, 64"), "{error}");
}

#[test]
fn a_run_ends_between_steps_where_it_is_told_to() {
    let session = relu();
    let feeds = vec![floats(&[1, 3], &[1.0; 3]), truth(true)];
    let stop = || Err(Error::Aborted("run: aborted".into()));
    assert_eq!(session.run(feeds.clone(), &stop).err().unwrap().code(), "ABORTED");
    assert!(run(&session, &feeds).is_ok());
}

#[test]
fn results_may_be_inputs_or_constants() {
    let session = Net::new()
        .input("x", DType::F32, &[2])
        .constant("c", longs(&[1], &[7]))
        .node("Identity", &["x"], &["same"])
        .outputs(&["same", "x", "c"])
        .session();
    let results = run(&session, &[floats(&[2], &[1.0, 2.0])]).unwrap();
    assert_eq!(
        results.iter().map(|it| told(it).1).collect::<Vec<_>>(),
        [vec![1.0, 2.0], vec![1.0, 2.0], vec![7.0]]
    );
}
