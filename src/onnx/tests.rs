//! Models made in memory, most of them hostile.

use super::proto::{self, kind};
use super::{External, Limits, Model, load};
use crate::graph::{Attribute, Dim, Graph};
use crate::{DType, Error, Result};
use bytes::Bytes;
use prost::Message;

fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> proto::Node {
    let names = |list: &[&str]| list.iter().map(|name| name.to_string()).collect();
    proto::Node { op: op.into(), inputs: names(inputs), outputs: names(outputs), ..Default::default() }
}

fn with(mut node: proto::Node, attribute: proto::Attribute) -> proto::Node {
    node.attributes.push(attribute);
    node
}

fn attribute(name: &str, kind: i32) -> proto::Attribute {
    proto::Attribute { name: name.into(), kind, ..Default::default() }
}

fn branch(name: &str, graph: proto::Graph) -> proto::Attribute {
    proto::Attribute { g: Some(graph), ..attribute(name, kind::GRAPH) }
}

fn info(name: &str, dims: &[i64]) -> proto::ValueInfo {
    let dims = dims.iter().map(|&dim| proto::Dimension { extent: Some(proto::Extent::Value(dim)) });
    let shape = Some(proto::Shape { dims: dims.collect() });
    let tensor = Some(proto::TensorType { data_type: 1, shape });
    proto::ValueInfo { name: name.into(), kind: Some(proto::Type { tensor, ..Default::default() }) }
}

fn tensor(name: &str, data_type: i32, dims: &[i64]) -> proto::Tensor {
    proto::Tensor { name: name.into(), data_type, dims: dims.to_vec(), ..Default::default() }
}

fn floats(name: &str, values: &[f32]) -> proto::Tensor {
    proto::Tensor { float_data: values.to_vec(), ..tensor(name, 1, &[values.len() as i64]) }
}

fn graph(nodes: Vec<proto::Node>, inputs: &[&str], outputs: &[&str]) -> proto::Graph {
    let infos = |names: &[&str]| names.iter().map(|name| info(name, &[2])).collect();
    proto::Graph { nodes, inputs: infos(inputs), outputs: infos(outputs), ..Default::default() }
}

fn set(domain: &str, version: i64) -> proto::OperatorSet {
    proto::OperatorSet { domain: domain.into(), version }
}

fn model(graph: proto::Graph) -> proto::Model {
    proto::Model { ir_version: 8, opset_import: vec![set("", 17)], graph: Some(graph), ..Default::default() }
}

fn read(model: &proto::Model) -> Result<Model> {
    read_with(model, &External::default(), &Limits::default())
}

fn read_with(model: &proto::Model, external: &External, limits: &Limits) -> Result<Model> {
    load(Bytes::from(model.encode_to_vec()), external, limits)
}

/// The message of the error that reading gives, and its code.
fn refused(model: &proto::Model) -> (String, &'static str) {
    message(read(model))
}

fn message(result: Result<Model>) -> (String, &'static str) {
    match result {
        Ok(_) => panic!("the model was read"),
        Err(error) => (error.to_string(), error.code()),
    }
}

fn ops(graph: &Graph) -> Vec<&str> {
    graph.nodes.iter().map(|node| node.op.as_str()).collect()
}

fn names(graph: &Graph, ids: &[Option<crate::graph::ValueId>]) -> Vec<String> {
    ids.iter().map(|id| id.map_or(String::new(), |id| graph.name_of(id).to_string())).collect()
}

#[test]
fn nodes_are_sorted_and_keep_operands_left_out() {
    let nodes = vec![node("Clip", &["m", "", "top"], &["y"]), node("Relu", &["x"], &["m"])];
    let mut graph = graph(nodes, &["x"], &["y"]);
    graph.initializers = vec![floats("top", &[6.0])];
    let read = read(&model(graph)).unwrap();
    assert_eq!(ops(&read.graph), ["Relu", "Clip"]);
    assert_eq!(names(&read.graph, &read.graph.nodes[1].inputs), ["m", "", "top"]);
    assert_eq!(read.graph.nodes[0].version, 17);
    assert_eq!(read.graph.inputs.len(), 1);
    let declared = read.graph.values[read.graph.inputs[0].index()].declared.clone().unwrap();
    assert_eq!((declared.dtype, declared.dims), (DType::F32, Some(vec![Dim::Fixed(2)])));
}

#[test]
fn initializers_that_are_inputs_too_are_constants() {
    let mut graph = graph(vec![node("Add", &["x", "w"], &["y"])], &["x", "w"], &["y"]);
    graph.initializers = vec![floats("w", &[1.0, 2.0])];
    let read = read(&proto::Model { ir_version: 3, ..model(graph) }).unwrap();
    assert_eq!(read.graph.inputs.len(), 1);
    let constant = read.graph.constants.values().next().unwrap();
    assert_eq!(constant.host_view().unwrap().bytes(), bytemuck::cast_slice::<f32, u8>(&[1.0, 2.0]));
}

#[test]
fn constants_of_every_form() {
    let forms = [
        proto::Attribute { f: 1.5, ..attribute("value_float", kind::FLOAT) },
        proto::Attribute { floats: vec![1.0, 2.0], ..attribute("value_floats", kind::FLOATS) },
        proto::Attribute { i: -3, ..attribute("value_int", kind::INT) },
        proto::Attribute { ints: vec![4, 5], ..attribute("value_ints", kind::INTS) },
        proto::Attribute { t: Some(floats("", &[7.0])), ..attribute("value", kind::TENSOR) },
    ];
    let bytes: [&[u8]; 5] = [
        bytemuck::cast_slice(&[1.5f32]),
        bytemuck::cast_slice(&[1.0f32, 2.0]),
        bytemuck::cast_slice(&[-3i64]),
        bytemuck::cast_slice(&[4i64, 5]),
        bytemuck::cast_slice(&[7.0f32]),
    ];
    for (form, expected) in forms.into_iter().zip(bytes) {
        let read = read(&model(graph(vec![with(node("Constant", &[], &["y"]), form)], &[], &["y"]))).unwrap();
        assert!(read.graph.nodes.is_empty());
        assert_eq!(read.graph.constants[&read.graph.outputs[0]].host_view().unwrap().bytes(), expected);
    }
    let word = proto::Attribute { s: "a".into(), ..attribute("value_string", kind::STRING) };
    let strings = model(graph(vec![with(node("Constant", &[], &["y"]), word)], &[], &["y"]));
    assert_eq!(refused(&strings).1, "UNSUPPORTED_DTYPE");
    let bare = model(graph(vec![node("Constant", &[], &["y"])], &[], &["y"]));
    assert!(refused(&bare).0.contains("one result and one attribute"));
}

#[test]
fn elements_of_every_type_and_place() {
    let typed = |data_type, values: &[i32]| proto::Tensor {
        int32_data: values.to_vec(),
        ..tensor("w", data_type, &[values.len() as i64])
    };
    let cases: Vec<(proto::Tensor, Vec<u8>)> = vec![
        (typed(3, &[-128, 127]), vec![0x80, 0x7f]),
        (typed(2, &[0, 255]), vec![0, 255]),
        (typed(9, &[0, 2]), vec![0, 1]),
        (typed(5, &[-2]), vec![0xfe, 0xff]),
        (typed(10, &[0x3c00]), vec![0x00, 0x3c]),
        (typed(16, &[0x3f80]), vec![0x80, 0x3f]),
        (typed(6, &[-1]), vec![0xff; 4]),
        (proto::Tensor { uint64_data: vec![7], ..tensor("w", 12, &[1]) }, vec![7, 0, 0, 0]),
        (proto::Tensor { uint64_data: vec![7], ..tensor("w", 13, &[]) }, vec![7, 0, 0, 0, 0, 0, 0, 0]),
        (proto::Tensor { int64_data: vec![-1], ..tensor("w", 7, &[1, 1]) }, vec![0xff; 8]),
        (proto::Tensor { double_data: vec![1.0], ..tensor("w", 11, &[1]) }, 1f64.to_le_bytes().into()),
        (proto::Tensor { raw_data: Some(vec![1, 2].into()), ..tensor("w", 4, &[1]) }, vec![1, 2]),
        (tensor("w", 1, &[0, 5]), vec![]),
    ];
    for (stored, expected) in cases {
        let what = format!("{stored:?}");
        let mut graph = graph(vec![], &[], &[]);
        graph.initializers = vec![stored];
        let read = read(&model(graph)).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(
            read.graph.constants.values().next().unwrap().host_view().unwrap().bytes(),
            expected,
            "{what}"
        );
    }
}

#[test]
fn tensors_that_do_not_hold_what_they_say() {
    let raw = |bytes: usize| Some(Bytes::from(vec![0; bytes]));
    let cases = [
        (proto::Tensor { raw_data: raw(7), ..tensor("w", 1, &[2]) }, "8 bytes of float32 are wanted, got 7"),
        (proto::Tensor { float_data: vec![1.0], ..tensor("w", 1, &[2]) }, "2 elements are wanted, got 1"),
        (proto::Tensor { int64_data: vec![1], ..tensor("w", 1, &[1]) }, "1 elements are wanted"),
        (proto::Tensor { int32_data: vec![300], ..tensor("w", 2, &[1]) }, "300 does not fit"),
        (proto::Tensor { raw_data: raw(4), float_data: vec![1.0], ..tensor("w", 1, &[1]) }, "got 5"),
        (tensor("w", 1, &[-1]), "dims must be 0 or more"),
        (tensor("w", 1, &[i64::MAX, i64::MAX]), "pass maxTensorBytes"),
        (tensor("w", 1, &[1 << 40]), "pass maxTensorBytes"),
        (tensor("w", 1, &[1; 17]), "at most 16 dims"),
        (tensor("w", 99, &[1]), "99 is no element type"),
        (tensor("w", 8, &[1]), "elements of type string"),
        (tensor("w", 17, &[1]), "elements of type float8"),
    ];
    for (stored, expected) in cases {
        let mut graph = graph(vec![], &[], &[]);
        graph.initializers = vec![stored];
        let (text, _) = refused(&model(graph));
        assert!(text.contains(expected) && text.contains("initializer 'w'"), "{text}");
    }
}

#[test]
fn values_are_written_once_and_read_after() {
    let relu = |input: &str, output: &str| node("Relu", &[input], &[output]);
    let cases = [
        (graph(vec![relu("x", "y"), relu("x", "y")], &["x"], &["y"]), "value 'y' is written twice"),
        (graph(vec![relu("x", "x")], &["x"], &["x"]), "value 'x' is written twice"),
        (
            graph(vec![relu("z", "y")], &["x"], &["y"]),
            "node '' ('Relu'): value 'z' is read but never written",
        ),
        (graph(vec![], &["x"], &["y"]), "value 'y' is read but never written"),
        (graph(vec![relu("b", "a"), relu("a", "b")], &[], &["b"]), "nodes wait for each other"),
        (graph(vec![relu("a", "a")], &[], &["a"]), "'Relu' that gives 'a'"),
    ];
    for (graph, expected) in cases {
        let (text, code) = refused(&model(graph));
        assert!(text.contains(expected), "{text}");
        assert_eq!(code, "INVALID_MODEL");
    }
}

#[test]
fn branches_see_values_around_and_may_not_write_them() {
    let inner = graph(vec![node("Add", &["x", "late"], &["sum"])], &[], &["sum"]);
    let chosen = with(
        with(node("If", &["c"], &["y"]), branch("then_branch", inner.clone())),
        branch("else_branch", inner),
    );
    let outer = graph(vec![chosen, node("Relu", &["x"], &["late"])], &["x", "c"], &["y"]);
    let read = read(&model(outer)).unwrap();
    assert_eq!(ops(&read.graph), ["Relu", "If"]);
    let Some(Attribute::Graph(inner)) = read.graph.nodes[1].attributes.get("then_branch") else { panic!() };
    let captured: Vec<_> = inner.captures.iter().map(|capture| read.graph.name_of(capture.outer)).collect();
    assert_eq!(captured, ["x", "late"]);
    assert_eq!(read.graph.all_nodes().len(), 4);

    let shadowing = graph(vec![node("Relu", &["x"], &["x"])], &[], &["x"]);
    let outer =
        graph(vec![with(node("If", &["c"], &["y"]), branch("then_branch", shadowing))], &["x", "c"], &["y"]);
    assert!(refused(&model(outer)).0.contains("value 'x' is written twice"));
}

#[test]
fn values_reach_through_two_graphs() {
    let innermost = graph(vec![node("Relu", &["x"], &["r"])], &[], &["r"]);
    let inner = graph(vec![with(node("If", &["c"], &["i"]), branch("then_branch", innermost))], &[], &["i"]);
    let outer =
        graph(vec![with(node("If", &["c"], &["y"]), branch("then_branch", inner))], &["x", "c"], &["y"]);
    let read = read(&model(outer)).unwrap();
    let middle = read.graph.nodes[0].graphs().next().unwrap();
    let names: Vec<_> = middle.captures.iter().map(|capture| read.graph.name_of(capture.outer)).collect();
    assert_eq!(names, ["c", "x"]);
    assert_eq!(middle.nodes[0].graphs().next().unwrap().captures.len(), 1);
}

fn function(name: &str, inputs: &[&str], outputs: &[&str], nodes: Vec<proto::Node>) -> proto::Function {
    let names = |list: &[&str]| list.iter().map(|name| name.to_string()).collect();
    let (inputs, outputs) = (names(inputs), names(outputs));
    let opset_import = vec![set("", 18), set("own", 1)];
    let (name, domain) = (name.to_string(), "own".to_string());
    proto::Function { name, domain, inputs, outputs, nodes, opset_import, ..Default::default() }
}

fn own(node: proto::Node) -> proto::Node {
    proto::Node { domain: "own".into(), ..node }
}

#[test]
fn functions_are_written_out_where_they_are_called() {
    let slope = proto::Attribute { ref_name: "slope".into(), ..attribute("alpha", kind::FLOAT) };
    let body = vec![with(node("LeakyRelu", &["a"], &["t"]), slope), node("Clip", &["t", "low"], &["b"])];
    let twice = vec![own(node("Leaky", &["p"], &["q"])), own(node("Leaky", &["q"], &["r"]))];
    let slope = proto::Attribute { f: 0.5, ..attribute("slope", kind::FLOAT) };
    let mut leaky = function("Leaky", &["a", "low"], &["b"], body);
    leaky.defaults = vec![proto::Attribute { f: 0.25, ..slope.clone() }];
    let functions = vec![leaky, function("Twice", &["p"], &["r", "p"], twice)];
    let nodes = vec![
        with(own(node("Leaky", &["x", "x"], &["m"])), slope),
        own(node("Twice", &["m"], &["y", "same"])),
    ];
    let called = proto::Model { functions, ..model(graph(nodes, &["x"], &["y", "same"])) };
    let read = read(&called).unwrap();
    assert_eq!(ops(&read.graph), ["LeakyRelu", "Clip", "LeakyRelu", "Identity", "Clip", "LeakyRelu", "Clip"]);
    let slopes = read.graph.nodes.iter().filter_map(|node| match node.attributes.get("alpha") {
        Some(Attribute::Float(slope)) => Some(*slope),
        _ => None,
    });
    assert_eq!(slopes.collect::<Vec<_>>(), [0.5, 0.25, 0.25]);
    let clips: Vec<_> = read.graph.nodes.iter().filter(|node| node.op == "Clip").collect();
    assert_eq!(names(&read.graph, &clips[0].inputs), ["t", "x"]);
    assert_eq!(names(&read.graph, &clips[1].inputs), ["t", ""]);
    assert_eq!(names(&read.graph, &clips[2].outputs), ["y"]);
    assert_eq!(clips[0].version, 18);
}

#[test]
fn functions_that_never_end_or_do_not_fit() {
    let call = |name: &str, inputs: &[&str], outputs: &[&str]| own(node(name, inputs, outputs));
    let with_functions = |functions: Vec<proto::Function>, nodes| proto::Model {
        functions,
        ..model(graph(nodes, &["x"], &["y"]))
    };
    let endless = function("F", &["a"], &["b"], vec![call("F", &["a"], &["b"])]);
    let cases = [
        (with_functions(vec![endless.clone()], vec![call("F", &["x"], &["y"])]), "more than 32 deep"),
        (with_functions(vec![endless.clone(), endless], vec![]), "function 'F' is defined twice"),
        (
            with_functions(vec![function("F", &["a"], &["b"], vec![])], vec![call("F", &["x"], &["y"])]),
            "never writes its result 'b'",
        ),
        (
            with_functions(vec![function("F", &[], &["b"], vec![])], vec![call("F", &["x"], &["y"])]),
            "takes 0 operands and gives 1 results, the call has 1 and 1",
        ),
        (
            with_functions(
                vec![function("F", &["a"], &["b"], vec![node("Relu", &["x"], &["b"])])],
                vec![call("F", &["x"], &["y"])],
            ),
            "value 'x' is read but never written",
        ),
    ];
    for (model, expected) in cases {
        let (text, _) = refused(&model);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn few_functions_cannot_become_many_nodes() {
    let level = |index: usize| {
        let below = format!("F{}", index - 1);
        let calls = (0..10).map(|i| own(node(&below, &["a"], &[&format!("b{i}")])));
        let mut nodes: Vec<_> = calls.collect();
        nodes.push(node("Relu", &["b0"], &["b"]));
        function(&format!("F{index}"), &["a"], &["b"], nodes)
    };
    let mut functions = vec![function("F0", &["a"], &["b"], vec![node("Relu", &["a"], &["b"])])];
    functions.extend((1..12).map(level));
    let nodes = vec![own(node("F11", &["x"], &["y"]))];
    let model = proto::Model { functions, ..model(graph(nodes, &["x"], &["y"])) };
    assert!(refused(&model).0.contains("more nodes than maxNodes, which is 100000"));
}

#[test]
fn attributes_are_what_they_say() {
    let cases = [
        (attribute("a", 0), "0 is no kind of attribute"),
        (attribute("a", 11), "kind 11 are not supported"),
        (attribute("a", kind::TENSOR), "holds no tensor"),
        (attribute("a", kind::GRAPH), "holds no graph"),
        (proto::Attribute { s: vec![0xff].into(), ..attribute("a", kind::STRING) }, "not valid UTF-8"),
        (proto::Attribute { ref_name: "b".into(), ..attribute("a", kind::INT) }, "refers to a function's"),
    ];
    for (given, expected) in cases {
        let (text, _) =
            refused(&model(graph(vec![with(node("Relu", &["x"], &["y"]), given)], &["x"], &["y"])));
        assert!(text.contains(expected) && text.contains("attribute 'a'"), "{text}");
    }
    let twice =
        with(with(node("Relu", &["x"], &["y"]), attribute("a", kind::INT)), attribute("a", kind::INT));
    assert!(refused(&model(graph(vec![twice], &["x"], &["y"]))).0.contains("'a' is given twice"));
}

#[test]
fn versions_and_sets() {
    let plain = || model(graph(vec![node("Relu", &["x"], &["y"])], &["x"], &["y"]));
    assert!(
        refused(&proto::Model { ir_version: 14, ..plain() })
            .0
            .contains("IR versions 3 to 13 are read, got 14")
    );
    assert!(refused(&proto::Model { ir_version: 2, ..plain() }).0.contains("got 2"));
    let sets = |sets| proto::Model { opset_import: sets, ..plain() };
    assert!(refused(&sets(vec![set("", 26)])).0.contains("operator sets 7 to 25 are read, got 26"));
    assert!(refused(&sets(vec![set("", 5)])).0.contains("got 5"));
    // Relu is at 6 what it is at 7.
    assert_eq!(read(&sets(vec![set("", 6)])).unwrap().graph.nodes[0].version, 6);
    assert!(refused(&sets(vec![])).0.contains("operator set '' is used but not imported"));
    assert!(read(&sets(vec![set("ai.onnx", 9), set("never.used", 99)])).is_ok());
}

#[test]
fn files_that_are_none() {
    let none =
        |bytes: &[u8]| message(load(Bytes::copy_from_slice(bytes), &External::default(), &Limits::default()));
    assert!(none(b"").0.contains("IR versions 3 to 13"));
    assert!(none(b"<html>").0.contains("not a readable ONNX file"));
    assert!(none(&[0x3a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]).0.contains("longer than the file"));
    let file = model(graph(vec![node("Relu", &["x"], &["y"])], &["x"], &["y"])).encode_to_vec();
    for cut in 1..file.len() {
        let read = load(Bytes::copy_from_slice(&file[..cut]), &External::default(), &Limits::default());
        assert!(!matches!(read, Err(Error::Internal(_))), "{cut}");
    }
}

#[test]
fn limits_hold() {
    let nodes: Vec<_> = (0..20).map(|i| node("Relu", &["x"], &[&format!("y{i}")])).collect();
    let many = model(graph(nodes, &["x"], &["y0"]));
    let limits = Limits { nodes: 19, ..Limits::default() };
    assert!(message(read_with(&many, &External::default(), &limits)).0.contains("maxNodes, which is 19"));
    let limits = Limits { model_bytes: 10, ..Limits::default() };
    assert!(
        message(read_with(&many, &External::default(), &limits)).0.contains("maxModelBytes, which is 10")
    );
    // Empty messages take two bytes in the file and hundreds once decoded.
    let mut flood = vec![0x3a];
    prost::encoding::encode_varint(8 << 20, &mut flood);
    flood.extend([0x0a, 0x00].repeat(4 << 20));
    let (text, _) = message(load(flood.into(), &External::default(), &Limits::default()));
    assert!(text.contains("more than 3200000 messages"), "{text}");
}

#[test]
fn graphs_nested_too_deeply() {
    let mut inner = graph(vec![node("Relu", &["x"], &["y"])], &[], &["y"]);
    for _ in 0..60 {
        inner = graph(vec![with(node("If", &["c"], &["y"]), branch("then_branch", inner))], &[], &["y"]);
    }
    assert!(refused(&model(inner)).0.contains("recursion limit"));
}

fn external(entries: &[(&str, &str)]) -> proto::Model {
    let mut weight = tensor("w", 1, &[2]);
    weight.data_location = 1;
    let entry = |(key, value): &(&str, &str)| proto::Entry { key: key.to_string(), value: value.to_string() };
    weight.external_data = entries.iter().map(entry).collect();
    let mut graph = graph(vec![], &[], &[]);
    graph.initializers = vec![weight];
    model(graph)
}

#[test]
fn external_data_comes_from_entries_or_the_folder() {
    let folder = std::env::temp_dir().join(format!("warpwright-onnx-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("inner")).unwrap();
    let values: Vec<u8> = [0f32, 1.0, 2.0, 3.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(folder.join("data"), &values).unwrap();
    let model = external(&[("location", "data"), ("offset", "4"), ("length", "8"), ("checksum", "x")]);
    let entries = External::default().with_entry("data", values.clone().into());
    for source in [External::folder(&folder), entries] {
        let read = read_with(&model, &source, &Limits::default()).unwrap();
        assert_eq!(
            read.graph.constants.values().next().unwrap().host_view().unwrap().bytes(),
            &values[4..12]
        );
    }
    std::fs::write(folder.join("model.onnx"), model.encode_to_vec()).unwrap();
    assert!(super::load_file(&folder.join("model.onnx"), &Limits::default()).is_ok());
    assert!(refused(&model).0.contains("external data 'data' was not given"));

    let refused = |entries: &[(&str, &str)]| {
        message(read_with(&external(entries), &External::folder(&folder), &Limits::default())).0
    };
    for location in ["../data", "/etc/passwd", "inner/../data", "..", ".", "", "a\\b", "c:data", "da\0ta"] {
        assert!(refused(&[("location", location)]).contains("plain file name"), "{location}");
    }
    assert!(refused(&[("location", "inner")]).contains("not a regular file"));
    assert!(refused(&[("location", "absent")]).contains("cannot be read"));
    assert!(refused(&[]).contains("without a location"));
    assert!(refused(&[("location", "data"), ("offset", "9")]).contains("bytes 9 to 17 are wanted"));
    assert!(refused(&[("location", "data"), ("offset", "-1")]).contains("whole number, got '-1'"));
    assert!(refused(&[("location", "data"), ("offset", "18446744073709551615")]).contains("too large"));
    assert!(refused(&[("location", "data"), ("length", "9")]).contains("8 bytes, its length says '9'"));
    assert!(refused(&[("location", "data"), ("basepath", "/")]).contains("unknown key 'basepath'"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.join("data"), folder.join("link")).unwrap();
        assert!(refused(&[("location", "link")]).contains("cannot be read"));
        std::fs::hard_link(folder.join("data"), folder.join("second")).unwrap();
        let second = external(&[("location", "second")]);
        assert!(refused(&[("location", "second")]).contains("several hard links"));
        let taken = read_with(&second, &External::folder(&folder).with_links(), &Limits::default());
        assert!(taken.is_ok());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn names_in_messages_are_short_and_escaped() {
    let long = "x\n".repeat(1000);
    let (text, _) = refused(&model(graph(vec![node("Relu", &[&long], &["y"])], &[], &["y"])));
    assert!(text.len() < 300 && !text.contains('\n'), "{text}");
}

#[test]
fn inputs_that_are_no_tensors() {
    let mut sequence = graph(vec![], &["x"], &["x"]);
    sequence.inputs[0].kind = Some(proto::Type { sequence: Some(proto::Skipped {}), ..Default::default() });
    assert_eq!(refused(&model(sequence)).1, "UNSUPPORTED_OP");
    let mut bare = graph(vec![], &["x"], &["x"]);
    bare.inputs[0].kind = None;
    assert!(refused(&model(bare)).0.contains("input 'x' has no type"));
    let mut sparse = graph(vec![], &["x"], &["x"]);
    sparse.sparse_initializers = vec![proto::Skipped {}];
    assert!(refused(&model(sparse)).0.contains("sparse initializers"));
}
