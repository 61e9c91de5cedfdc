//! Instructions of one thread or one warp. `%w0..`, `%x0..`, `%h0..` hold the inputs' low 32, 64 and 16 bits; a body
//! leaves its result in `%ow` (32 bits), `%ox` (64), `%oh` (16) or `%op` (a predicate).

use super::inputs::COUNT;
use super::{Promise, Test};

/// Makes the body of a whole kernel.
fn frame(body: &str) -> String {
    let mut text = String::from(
        ".reg .b64 %x<3>, %in, %out, %ox, %t<8>, %sum, %at;\n.reg .b32 %w<3>, %ow, %v<8>, %id, %lane, %pw;\n.reg .b16 %h<3>, %oh, %g<8>;\n\
         .reg .pred %op, %p<4>;\n.shared .align 16 .b8 mem[4096];\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n\
         mov.u32 %id, %ctaid.x;\nshl.b32 %id, %id, 8;\nmov.u32 %lane, %tid.x;\nadd.u32 %id, %id, %lane;\n\
         mul.wide.u32 %at, %id, 24;\nadd.s64 %in, %in, %at;\nmul.wide.u32 %at, %id, 8;\nadd.s64 %out, %out, %at;\n\
         mov.u64 %ox, 0;\nmov.u32 %ow, 0;\nmov.u16 %oh, 0;\nsetp.ne.u32 %op, %ow, 0;\n",
    );
    for n in 0..3 {
        text += &format!(
            "ld.global.u64 %x{n}, [%in+{}];\ncvt.u32.u64 %w{n}, %x{n};\ncvt.u16.u64 %h{n}, %x{n};\n",
            8 * n
        );
    }
    text += body;
    text + "\nselp.u32 %pw, 1, 0, %op;\ncvt.u64.u32 %sum, %pw;\nxor.b64 %ox, %ox, %sum;\ncvt.u64.u32 %sum, %ow;\n\
            xor.b64 %ox, %ox, %sum;\ncvt.u64.u16 %sum, %oh;\nxor.b64 %ox, %ox, %sum;\nst.global.u64 [%out], %ox;\nret;"
}

fn test(name: &str, body: &str, inputs: &str, promise: Promise) -> Test {
    Test {
        name: name.to_string(),
        body: frame(body),
        promise,
        inputs: inputs.to_string(),
        blocks: (COUNT / 256) as u32,
        threads: 256,
        outputs: COUNT,
    }
}

/// `op D, A, B...;` with operands by their letters: `w` 32 bits, `x` 64, `h` 16, `p` a predicate result.
fn plain(name: &str, form: &str, inputs: &str, promise: Promise) -> Test {
    let (result, sources) = form.split_once(':').expect("a form");
    let operands =
        sources.chars().enumerate().map(|(n, letter)| format!(", %{letter}{n}")).collect::<String>();
    test(name, &format!("{name} %o{result}{operands};"), inputs, promise)
}

fn exact(names: &[String], form: &str, inputs: &str) -> Vec<Test> {
    names.iter().map(|name| plain(name, form, inputs, Promise::Exact)).collect()
}

/// Every combination of one word of each list, ended by the type.
fn names(parts: &[&[&str]], ty: &str) -> Vec<String> {
    let all = parts.iter().fold(vec![String::new()], |all, part| {
        all.iter().flat_map(|start| part.iter().map(move |word| format!("{start}{word}"))).collect()
    });
    all.into_iter().map(|name| format!("{name}{ty}")).collect()
}

const ROUNDS: &[&str] = &[".rn", ".rz", ".rm", ".rp"];
const FTZ: &[&str] = &["", ".ftz"];
const SAT: &[&str] = &["", ".sat"];

fn float32() -> Vec<Test> {
    let mut all = exact(&names(&[&["add", "sub", "mul"], ROUNDS, FTZ, SAT], ".f32"), "w:ww", "f32");
    all.extend(exact(&names(&[&["fma"], ROUNDS, FTZ, SAT], ".f32"), "w:www", "f32"));
    all.extend(exact(&names(&[&["min", "max"], FTZ, &["", ".NaN"]], ".f32"), "w:ww", "f32"));
    all.extend(exact(&names(&[&["abs", "neg"], FTZ], ".f32"), "w:w", "f32"));
    all.extend(exact(&names(&[&["copysign", "div.rn", "div.rn.ftz"]], ".f32"), "w:ww", "f32"));
    all.extend(exact(&names(&[&["rcp", "sqrt"], ROUNDS, FTZ], ".f32"), "w:w", "f32"));
    let classes = &["finite", "infinite", "number", "notanumber", "normal", "subnormal"];
    all.extend(exact(&names(&[&["testp."], classes], ".f32"), "p:w", "f32"));
    all.extend(exact(&names(&[&["testp."], classes], ".f64"), "p:x", "f64"));
    let functions = &["ex2", "lg2", "sin", "cos", "rcp", "rsqrt", "sqrt"];
    let approximate = names(&[functions, &[".approx"], FTZ], ".f32");
    all.extend(approximate.iter().map(|name| plain(name, "w:w", "f32", Promise::Approximate)));
    all.push(plain("tanh.approx.f32", "w:w", "f32", Promise::Approximate));
    let divisions = names(&[&["div.approx", "div.full"], FTZ], ".f32");
    all.extend(divisions.iter().map(|name| plain(name, "w:ww", "f32", Promise::Approximate)));
    all
}

fn float64() -> Vec<Test> {
    let mut all = exact(&names(&[&["add", "sub", "mul", "div"], ROUNDS], ".f64"), "x:xx", "f64");
    all.extend(exact(&names(&[&["fma"], ROUNDS], ".f64"), "x:xxx", "f64"));
    all.extend(exact(&names(&[&["min", "max", "copysign"]], ".f64"), "x:xx", "f64"));
    all.extend(exact(&names(&[&["abs", "neg"]], ".f64"), "x:x", "f64"));
    all.extend(exact(&names(&[&["rcp", "sqrt"], ROUNDS], ".f64"), "x:x", "f64"));
    let gross = ["rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64"];
    all.extend(gross.iter().map(|name| plain(name, "x:x", "f64", Promise::Approximate)));
    all
}

fn halves() -> Vec<Test> {
    let mut all = Vec::new();
    for (ty, letter, inputs) in
        [("f16", 'h', "f16"), ("f16x2", 'w', "f16"), ("bf16", 'h', "bf16"), ("bf16x2", 'w', "bf16")]
    {
        let form = |sources: usize| format!("{letter}:{}", letter.to_string().repeat(sources));
        let ty = format!(".{ty}");
        all.extend(exact(
            &names(&[&["add", "sub", "mul", "add.rn", "sub.rn", "mul.rn"]], &ty),
            &form(2),
            inputs,
        ));
        all.extend(exact(&names(&[&["min", "max"], &["", ".NaN"]], &ty), &form(2), inputs));
        all.extend(exact(&names(&[&["fma.rn", "fma.rn.relu"]], &ty), &form(3), inputs));
        all.extend(exact(&names(&[&["abs", "neg"]], &ty), &form(1), inputs));
        if inputs == "f16" {
            let modifiers = &[".ftz", ".sat", ".ftz.sat"];
            all.extend(exact(&names(&[&["add", "sub", "mul"], modifiers], &ty), &form(2), inputs));
            all.extend(exact(&names(&[&["fma.rn"], modifiers], &ty), &form(3), inputs));
            all.extend(exact(
                &names(&[&["min.ftz", "max.ftz", "min.ftz.NaN", "max.ftz.NaN"]], &ty),
                &form(2),
                inputs,
            ));
            all.extend(exact(&names(&[&["fma.rn.ftz.relu"]], &ty), &form(3), inputs));
            all.extend(exact(&names(&[&["abs.ftz", "neg.ftz"]], &ty), &form(1), inputs));
        }
        let functions =
            if inputs == "f16" { ["ex2.approx", "tanh.approx"] } else { ["ex2.approx.ftz", "tanh.approx"] };
        if letter == 'h' {
            let all_of = names(&[&functions], &ty);
            all.extend(all_of.iter().map(|name| plain(name, &form(1), inputs, Promise::Approximate)));
        }
    }
    all
}

const COMPARISONS: &[&str] = &["eq", "ne", "lt", "le", "gt", "ge"];
const UNORDERED: &[&str] = &["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"];

fn comparisons() -> Vec<Test> {
    let mut all = Vec::new();
    for (ty, letter) in [("s16", 'h'), ("u16", 'h'), ("s32", 'w'), ("u32", 'w'), ("s64", 'x'), ("u64", 'x')] {
        let ty = format!(".{ty}");
        all.extend(exact(
            &names(&[&["setp."], COMPARISONS], &ty),
            &format!("p:{letter}{letter}"),
            "integers",
        ));
    }
    for (ty, letter) in [("f32", 'w'), ("f64", 'x')] {
        let form = format!("p:{letter}{letter}");
        for list in [COMPARISONS, UNORDERED] {
            all.extend(exact(&names(&[&["setp."], list], &format!(".{ty}")), &form, ty));
        }
    }
    all.extend(exact(&names(&[&["setp."], COMPARISONS, &[".ftz"]], ".f32"), "p:ww", "f32"));
    for list in [COMPARISONS, UNORDERED] {
        all.extend(exact(
            &names(&[&["set."], list, &["", ".ftz"], &[".u32", ".f32"]], ".f32"),
            "w:ww",
            "f32",
        ));
        all.extend(exact(&names(&[&["set."], list, &[".u32", ".f32"]], ".f64"), "w:xx", "f64"));
        for (ty, form) in [("f16", "h:hh"), ("bf16", "h:hh"), ("f16x2", "w:ww"), ("bf16x2", "w:ww")] {
            let inputs = &ty[..ty.len() - if ty.ends_with("x2") { 2 } else { 0 }];
            let modifiers: &[&str] = if inputs == "f16" { &["", ".ftz"] } else { &[""] };
            all.extend(exact(
                &names(&[&["set."], list, modifiers, &[&format!(".{ty}")]], &format!(".{ty}")),
                form,
                inputs,
            ));
            all.extend(exact(
                &names(&[&["set."], list, modifiers, &[".u32"]], &format!(".{ty}")),
                &form.replace("h:", "w:"),
                inputs,
            ));
            let single = !ty.ends_with("x2");
            for name in names(&[&["setp."], list, modifiers], &format!(".{ty}")) {
                let body = if single {
                    format!("{name} %op, %h0, %h1;")
                } else {
                    format!("{name} %op|%p0, %w0, %w1;\nselp.b32 %ow, 2, 0, %p0;")
                };
                all.push(test(&name, &body, inputs, Promise::Exact));
            }
        }
    }
    all.extend(exact(&names(&[&["set."], COMPARISONS, &[".u32"]], ".s32"), "w:ww", "integers"));
    let joined =
        "setp.ne.u32 %p0, %w2, 0;\nsetp.lt.and.f16x2 %op|%p1, %w0, %w1, %p0;\nselp.b32 %ow, 2, 0, %p1;";
    all.push(test("setp.lt.and.f16x2", joined, "f16", Promise::Exact));
    all
}

fn conversions() -> Vec<Test> {
    let letter = |bits: u32| match bits {
        64 => 'x',
        32 => 'w',
        _ => 'h',
    };
    let integers =
        [("s8", 8), ("u8", 8), ("s16", 16), ("u16", 16), ("s32", 32), ("u32", 32), ("s64", 64), ("u64", 64)];
    let floats = [("f16", 16), ("bf16", 16), ("f32", 32), ("f64", 64)];
    let mut all = Vec::new();
    let mut add =
        |words: &[&str], (to, to_bits): (&str, u32), (from, from_bits): (&str, u32), inputs: &str| {
            let form = format!("{}:{}", letter(to_bits), letter(from_bits));
            all.extend(exact(&names(&[&["cvt"], words], &format!(".{to}.{from}")), &form, inputs));
        };
    let towards = &[".rni", ".rzi", ".rmi", ".rpi"];
    let signed = |ty: (&str, u32)| ty.0.starts_with('s');
    for to in integers {
        for from in integers {
            // .sat is illegal where nothing can be out of range.
            let widening = to.1 - u32::from(signed(to)) >= from.1 - u32::from(signed(from))
                && (signed(to) || !signed(from));
            add(if widening { &[""] } else { SAT }, to, from, "integers");
        }
        for float in floats.into_iter().filter(|float| float.0 != "bf16" || to.1 > 8) {
            add(towards, to, float, float.0);
            add(ROUNDS, float, to, "integers");
        }
    }
    for (n, to) in floats.into_iter().enumerate() {
        for (m, from) in floats.into_iter().enumerate() {
            if to.1 < from.1 {
                add(ROUNDS, to, from, from.0);
            } else if n == m {
                add(towards, to, from, from.0);
            } else {
                add(&[""], to, from, from.0);
            }
        }
    }
    add(&[".rn.relu", ".rn.sat", ".rz.relu"], ("f16", 16), ("f32", 32), "f32");
    add(&[".rn.relu"], ("bf16", 16), ("f32", 32), "f32");
    add(&[".rn.ftz"], ("f32", 32), ("f64", 64), "f64");
    add(&[".ftz"], ("f64", 64), ("f32", 32), "f32");
    add(&[".sat", ".rni.ftz", ".rni.sat"], ("f32", 32), ("f32", 32), "f32");
    add(&[".rn.sat"], ("f32", 32), ("f64", 64), "f64");
    add(&[".sat", ".ftz"], ("f32", 32), ("f16", 16), "f16");
    add(&[".rn.ftz"], ("f16", 16), ("f32", 32), "f32");
    add(&[".rzi.ftz"], ("s32", 32), ("f32", 32), "f32");
    all.extend(exact(
        &names(&[&["cvt.rn", "cvt.rz"], &["", ".relu"], &[".f16x2", ".bf16x2"]], ".f32"),
        "w:ww",
        "f32",
    ));
    all.push(plain("cvt.rna.tf32.f32", "w:w", "f32", Promise::Exact));
    all
}

fn integers() -> Vec<Test> {
    let types: [(&str, char); 6] =
        [("s16", 'h'), ("u16", 'h'), ("s32", 'w'), ("u32", 'w'), ("s64", 'x'), ("u64", 'x')];
    let mut all = Vec::new();
    for (ty, letter) in types {
        let form = |sources: usize| format!("{letter}:{}", letter.to_string().repeat(sources));
        let ty = format!(".{ty}");
        all.extend(exact(
            &names(&[&["add", "sub", "mul.lo", "mul.hi", "min", "max"]], &ty),
            &form(2),
            "integers",
        ));
        all.extend(exact(&names(&[&["mad.lo", "mad.hi", "sad"]], &ty), &form(3), "integers"));
        if ty.starts_with(".s") {
            all.extend(exact(&names(&[&["abs", "neg"]], &ty), &form(1), "integers"));
        }
        // Divisors above zero: what a division by zero gives is not defined.
        let bits = ty[2..].parse::<u32>().unwrap_or(32);
        let (register, wide) = match letter {
            'h' => ("%g0", "%h1"),
            'w' => ("%v0", "%w1"),
            _ => ("%t0", "%x1"),
        };
        for op in ["div", "rem"] {
            let body = format!(
                "shr.u{bits} {register}, {wide}, 1;\nor.b{bits} {register}, {register}, 1;\n{op}{ty} %o{letter}, %{letter}0, {register};"
            );
            all.push(test(&format!("{op}{ty}"), &body, "integers", Promise::Exact));
        }
    }
    all.extend(exact(&names(&[&["mul24"], &[".lo", ".hi"], &[".s32", ".u32"]], ""), "w:ww", "integers"));
    all.extend(exact(&names(&[&["mad24"], &[".lo", ".hi"], &[".s32", ".u32"]], ""), "w:www", "integers"));
    all.extend(exact(&names(&[&["mul.wide.s32", "mul.wide.u32"]], ""), "x:ww", "integers"));
    all.extend(exact(&names(&[&["mul.wide.s16", "mul.wide.u16"]], ""), "w:hh", "integers"));
    all.extend(exact(&names(&[&["mad.wide.s32", "mad.wide.u32"]], ""), "x:wwx", "integers"));
    all.extend(exact(&names(&[&["add.sat.s32", "sub.sat.s32"]], ""), "w:ww", "integers"));
    all.extend(exact(&names(&[&["dp4a"], &[".s32", ".u32"], &[".s32", ".u32"]], ""), "w:www", "integers"));
    let carries = [
        ("add.cc, addc", "add.cc.u32 %v0, %w0, %w1;\naddc.u32 %v1, %w1, %w2;\nmov.b64 %ox, {%v0, %v1};"),
        ("sub.cc, subc", "sub.cc.u32 %v0, %w0, %w1;\nsubc.u32 %v1, %w1, %w2;\nmov.b64 %ox, {%v0, %v1};"),
        (
            "mad.lo.cc, madc.hi",
            "mad.lo.cc.u32 %v0, %w0, %w1, %w2;\nmadc.hi.u32 %v1, %w0, %w1, %w2;\nmov.b64 %ox, {%v0, %v1};",
        ),
    ];
    all.extend(carries.iter().map(|(name, body)| test(name, body, "integers", Promise::Exact)));
    all
}

fn bits() -> Vec<Test> {
    let mut all = exact(&names(&[&["and", "or", "xor"]], ".b32"), "w:ww", "integers");
    all.extend(exact(&names(&[&["and", "or", "xor"]], ".b64"), "x:xx", "integers"));
    all.extend(exact(&names(&[&["not", "cnot", "brev", "popc", "clz"]], ".b32"), "w:w", "integers"));
    all.extend(exact(&names(&[&["not", "cnot", "brev"]], ".b64"), "x:x", "integers"));
    all.extend(exact(&names(&[&["popc", "clz"]], ".b64"), "w:x", "integers"));
    all.extend(exact(&names(&[&["bfind"], &["", ".shiftamt"], &[".u32", ".s32"]], ""), "w:w", "integers"));
    all.extend(exact(&names(&[&["bfind"], &["", ".shiftamt"], &[".u64", ".s64"]], ""), "w:x", "integers"));
    all.extend(exact(&names(&[&["and", "or", "xor"]], ".b16"), "h:hh", "integers"));
    all.extend(exact(&names(&[&["not", "cnot"]], ".b16"), "h:h", "integers"));
    all.extend(exact(&names(&[&["prmt.b32"]], ""), "w:www", "integers"));
    let modes = &["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"];
    all.extend(exact(&names(&[&["prmt.b32."], modes], ""), "w:www", "integers"));
    all.extend(exact(&names(&[&["shf.l", "shf.r"], &[".wrap", ".clamp"]], ".b32"), "w:www", "integers"));
    all.extend(exact(&names(&[&["bfe.u32", "bfe.s32"]], ""), "w:www", "integers"));
    all.extend(exact(&names(&[&["bfe.u64", "bfe.s64"]], ""), "x:xww", "integers"));
    for (ty, letter) in [("b32", 'w'), ("u32", 'w'), ("s32", 'w'), ("b64", 'x'), ("u64", 'x'), ("s64", 'x')] {
        let op = if ty.starts_with('b') { "shl" } else { "shr" };
        let body = format!("and.b32 %v0, %w1, 127;\n{op}.{ty} %o{letter}, %{letter}0, %v0;");
        all.push(test(&format!("{op}.{ty}"), &body, "integers", Promise::Exact));
    }
    for (ty, letter) in [("b32", 'w'), ("b64", 'x')] {
        let body = format!("shr.u32 %v0, %w2, 8;\nbfi.{ty} %o{letter}, %{letter}0, %{letter}1, %w2, %v0;");
        all.push(test(&format!("bfi.{ty}"), &body, "integers", Promise::Exact));
    }
    for table in [0x01, 0x1b, 0x96, 0xca, 0xe8, 0xfe] {
        let name = format!("lop3.b32 0x{table:02x}");
        all.push(test(&name, &format!("lop3.b32 %ow, %w0, %w1, %w2, {table};"), "integers", Promise::Exact));
    }
    all
}

/// Between lanes and in memory.
fn together() -> Vec<Test> {
    let mut bodies: Vec<(String, String, &str)> = Vec::new();
    for way in ["up", "down", "bfly", "idx"] {
        for (clamp, label) in [("0", "whole warps"), ("31", "whole warps, clamp 31"), ("0x181f", "eights")] {
            let body = format!("shfl.sync.{way}.b32 %ow|%op, %w0, %w1, {clamp}, -1;");
            bodies.push((format!("shfl.sync.{way}.b32, {label}"), body, "integers"));
        }
    }
    let low = "and.b32 %v0, %w0, 1;\nsetp.eq.u32 %p0, %v0, 1;\n";
    for (op, result) in [("all.pred", "%op"), ("any.pred", "%op"), ("uni.pred", "%op"), ("ballot.b32", "%ow")]
    {
        bodies.push((
            format!("vote.sync.{op}"),
            format!("{low}vote.sync.{op} {result}, %p0, -1;"),
            "integers",
        ));
    }
    bodies.push((
        "match.any.sync.b32".into(),
        "and.b32 %v0, %w0, 3;\nmatch.any.sync.b32 %ow, %v0, -1;".into(),
        "integers",
    ));
    bodies.push((
        "match.any.sync.b64".into(),
        "and.b64 %t0, %x0, 0x100000001;\nmatch.any.sync.b64 %ow, %t0, -1;".into(),
        "integers",
    ));
    bodies.push((
        "match.all.sync.b32".into(),
        "and.b32 %v0, %w0, 0;\nmatch.all.sync.b32 %ow|%op, %v0, -1;".into(),
        "integers",
    ));
    for op in
        ["add.u32", "min.u32", "max.u32", "add.s32", "min.s32", "max.s32", "and.b32", "or.b32", "xor.b32"]
    {
        bodies.push((format!("redux.sync.{op}"), format!("redux.sync.{op} %ow, %w0, -1;"), "integers"));
    }
    for (form, transposed) in
        [("x1", ""), ("x2", ""), ("x4", ""), ("x1", ".trans"), ("x2", ".trans"), ("x4", ".trans")]
    {
        let count = form[1..].parse().unwrap_or(1);
        let to: Vec<String> = (0..count).map(|n| format!("%v{}", n + 2)).collect();
        let sum: String = (0..count)
            .map(|n| format!("shf.l.wrap.b32 %ow, %ow, %ow, 7;\nxor.b32 %ow, %ow, %v{};\n", n + 2))
            .collect();
        let body = format!(
            "mov.u32 %v0, mem;\nshl.b32 %v1, %lane, 4;\nadd.u32 %v0, %v0, %v1;\nst.shared.v2.u64 [%v0], {{%x0, %x1}};\nbar.sync 0;\n\
             ldmatrix.sync.aligned.m8n8.{form}{transposed}.shared.b16 {{{}}}, [%v0];\n{sum}",
            to.join(", ")
        );
        bodies.push((format!("ldmatrix.{form}{transposed}"), body, "integers"));
    }
    for transposed in ["", ".trans"] {
        let place = "mov.u32 %v0, mem;\nshl.b32 %v1, %lane, 4;\nadd.u32 %v0, %v0, %v1;\n";
        let values = "{%w0, %w1, %w2, %lane}";
        let back = "bar.sync 0;\nld.shared.v2.u64 {%ox, %t0}, [%v0];\nxor.b64 %ox, %ox, %t0;";
        let name = format!("stmatrix.sync.aligned.m8n8.x4{transposed}.shared.b16");
        bodies.push((name.clone(), format!("{place}{name} [%v0], {values};\n{back}"), "integers"));
    }
    let name = "movmatrix.sync.aligned.m8n8.trans.b16";
    bodies.push((name.into(), format!("{name} %ow, %w0;"), "integers"));
    for bytes in [4, 8, 16] {
        let body = format!(
            "mov.u32 %v0, mem;\nshl.b32 %v1, %lane, 4;\nadd.u32 %v0, %v0, %v1;\nst.shared.v2.u64 [%v0], {{%x0, %x1}};\n\
             and.b32 %v2, %lane, 15;\nmin.u32 %v2, %v2, {bytes};\nshl.b32 %v3, %id, 4;\ncvt.u64.u32 %t0, %v3;\n\
             ld.param.u64 %t1, [in];\nadd.u64 %t1, %t1, %t0;\ncp.async.ca.shared.global [%v0], [%t1], {bytes}, %v2;\n\
             cp.async.commit_group;\ncp.async.wait_group 0;\nld.shared.v2.u64 {{%ox, %t0}}, [%v0];\nxor.b64 %ox, %ox, %t0;"
        );
        bodies.push((format!("cp.async of up to {bytes} bytes"), body, "integers"));
    }
    for (op, ty, letter, inputs) in [
        ("add.noftz", "f16", 'h', "f16"),
        ("add.noftz", "f16x2", 'w', "f16"),
        ("add.noftz", "bf16", 'h', "bf16"),
        ("add.noftz", "bf16x2", 'w', "bf16"),
        ("add", "u32", 'w', "integers"),
        ("add", "u64", 'x', "integers"),
        ("add", "f32", 'w', "f32"),
        ("add", "f64", 'x', "f64"),
        ("min", "s32", 'w', "integers"),
        ("max", "u32", 'w', "integers"),
        ("min", "u64", 'x', "integers"),
        ("max", "s64", 'x', "integers"),
        ("inc", "u32", 'w', "integers"),
        ("dec", "u32", 'w', "integers"),
        ("and", "b32", 'w', "integers"),
        ("xor", "b64", 'x', "integers"),
        ("exch", "b32", 'w', "integers"),
    ] {
        let bits = [("h", "b16"), ("w", "b32"), ("x", "b64")]
            .iter()
            .find(|(l, _)| l.starts_with(letter))
            .map_or("", |x| x.1);
        let result = format!("%o{letter}");
        let body = format!(
            "st.global.u64 [%out], 0;\nst.global.{bits} [%out], %{letter}0;\natom.global.{op}.{ty} {result}, [%out], %{letter}1;\nld.global.{bits} {result}, [%out];"
        );
        bodies.push((format!("atom.global.{op}.{ty}"), body, inputs));
        // Not of pairs: compilers up to CUDA 13.0 take the wrong register for the upper half of one that comes out of
        // 64 bits.
        if op.starts_with("add") && !ty.ends_with("x2") {
            let body = format!(
                "mov.u32 %v0, mem;\nshl.b32 %v1, %lane, 3;\nadd.u32 %v0, %v0, %v1;\nst.shared.u64 [%v0], 0;\nst.shared.{bits} [%v0], %{letter}0;\n\
                 atom.shared.{op}.{ty} {result}, [%v0], %{letter}1;\nld.shared.{bits} {result}, [%v0];"
            );
            bodies.push((format!("atom.shared.{op}.{ty}"), body, inputs));
        }
    }
    for (bits, letter) in [("b16", 'h'), ("b32", 'w'), ("b64", 'x')] {
        let body = format!(
            "st.global.u64 [%out], 0;\nst.global.{bits} [%out], %{letter}0;\natom.global.cas.{bits} %o{letter}, [%out], %{letter}1, %{letter}2;\nld.global.{bits} %o{letter}, [%out];"
        );
        bodies.push((format!("atom.global.cas.{bits}"), body, "integers"));
    }
    bodies.into_iter().map(|(name, body, inputs)| test(&name, &body, inputs, Promise::Exact)).collect()
}

pub fn tests() -> Vec<Test> {
    [float32(), float64(), halves(), comparisons(), conversions(), integers(), bits(), together()]
        .into_iter()
        .flatten()
        .collect()
}
