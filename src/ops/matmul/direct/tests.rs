use super::super::super::spec::Meta;
use super::super::super::tile::Card;
use super::super::super::{Call, Raw};
use super::super::route::{Asked, Way, Ways};
use super::*;
use crate::DType;
use crate::kernels::{Parameter, find as kernel};
use crate::tensor::Form;

const H200: Setting = Setting { size: 4, aligned: [true; 3], activation: 0, card: Card::H200 };

fn product(dims: &[&[usize]], options: &[&str]) -> Product {
    let metas = dims.iter().map(|dims| Some(Meta::new(DType::F32, *dims))).collect();
    let raw: Vec<_> = options.iter().map(|name| (name.to_string(), Raw::Bool(true))).collect();
    Product::of(&Call::new("matmul", metas, &raw).unwrap()).unwrap()
}

/// The way of a product on an H200 whose operands come for the first time.
fn way(dims: &[&[usize]], options: &[&str]) -> String {
    let ways = Ways::new(&product(dims, options), Asked { setting: H200, precision: Precision::Highest });
    let split = ways.split.as_ref().map(|plan| plan.time(&[Form::Passing, Form::Passing]));
    match ways.best(split) {
        Way::Direct(plan) => {
            let name = plan.kernel.trim_start_matches("matmul_f32_").to_string();
            if plan.splits == 1 { name } else { format!("{name} / {}", plan.splits) }
        }
        Way::Split(_) => "split".into(),
        Way::Chains => "chains".into(),
    }
}

#[test]
fn shapes_that_services_run() {
    let of = |m, n, k| way(&[&[m, k], &[k, n]], &[]);
    let turned = |m, n, k| way(&[&[m, k], &[n, k]], &["transB"]);
    let batched = |count, m, n, k| way(&[&[count, m, k], &[count, k, n]], &[]);
    let rows: Vec<_> = [1, 4, 8, 9, 16].map(|m| of(m, 4096, 4096)).into();
    let narrow = ["32x8_stream_mk", "32x8_stream_mk", "32x8_stream_mk", "32x16_stream_mk", "32x16_stream_mk"];
    assert_eq!(rows, narrow.map(|name| format!("direct_{name}")));
    let rows: Vec<_> = [1, 2, 8, 9, 16].map(|m| turned(m, 4096, 4096)).into();
    assert_eq!(rows[0], "rows");
    assert_eq!(
        rows[1..],
        narrow[1..].iter().map(|name| format!("direct_{}", name.replace("mk", "kk"))).collect::<Vec<_>>()
    );
    assert_eq!(of(4096, 1, 4096), "rows");
    assert_eq!(of(4096, 8, 4096), "direct_32x8_stream_km");
    assert_eq!(of(16, 11008, 4096), "direct_64x16_stream_mk / 3");
    assert_eq!(of(32, 384, 384), "direct_16x8_mk");
    assert_eq!(of(128, 384, 384), "direct_32x16_mk");
    assert_eq!(of(128, 1536, 384), "direct_32x32_mk");
    assert_eq!(
        [128, 256, 512].map(|n| of(n, n, n)),
        ["direct_16x8_mk", "direct_32x16_mk", "direct_32x32_mk"]
    );
    assert_eq!(batched(12, 128, 64, 128), "direct_32x32_km");
    assert_eq!(batched(32, 128, 128, 128), "chains");
    assert_eq!(batched(256, 32, 32, 32), "chains");
    assert_eq!([of(1000, 1000, 1000), of(1023, 1025, 1027), of(4096, 1536, 384)], ["split"; 3]);
    assert_eq!(of(65536, 64, 64), "tall");
    assert!(of(64, 64, 65536).starts_with("direct_32x32"), "{}", of(64, 64, 65536));
}

#[test]
fn what_these_kernels_leave_to_others() {
    let planned = |dims: &[&[usize]], options: &[&str], setting: Setting, precision, level| {
        let setting = Setting { card: Card { level, ..setting.card }, ..setting };
        plan(&product(dims, options), setting, precision).map(|plan| plan.kernel)
    };
    let dims: &[&[usize]] = &[&[8, 512], &[512, 512]];
    assert!(planned(dims, &[], H200, Precision::Highest, 80).is_some());
    assert_eq!(planned(dims, &[], H200, Precision::Highest, 75), None);
    assert_eq!(planned(dims, &[], H200, Precision::Strict, 90), None);
    assert_eq!(planned(dims, &[], Setting { size: 8, ..H200 }, Precision::Highest, 90), None);
    assert_eq!(planned(&[&[8, 95], &[95, 512]], &[], H200, Precision::Highest, 90), None);
    // Rows side by side in both.
    assert_eq!(planned(&[&[512, 8], &[512, 512]], &["transA"], H200, Precision::Highest, 90), None);
    // Chains that are split along k anyway.
    let row = planned(&[&[1, 4096], &[4096, 4096]], &["transB"], H200, Precision::Strict, 90);
    assert_eq!(row.as_deref(), Some("matmul_f32_rows"));
}

#[test]
fn vectors_need_alignment_and_whole_pitches() {
    let flags = |dims: &[&[usize]], options: &[&str], aligned| {
        let setting = Setting { aligned, ..H200 };
        plan(&product(dims, options), setting, Precision::Highest).unwrap().flags(setting)
    };
    let both = VECTOR_L | VECTOR_S;
    assert_eq!(flags(&[&[8, 512], &[512, 512]], &[], [true; 3]), both | L_IS_B | FLIPPED | VECTOR_D);
    assert_eq!(flags(&[&[8, 512], &[512, 511]], &[], [true; 3]), VECTOR_S | L_IS_B | FLIPPED);
    assert_eq!(flags(&[&[8, 511], &[512, 511]], &["transB"], [true; 3]), L_IS_B | FLIPPED | VECTOR_D);
    assert_eq!(flags(&[&[512, 512], &[512, 8]], &[], [true; 3]), both | VECTOR_D);
    assert_eq!(flags(&[&[512, 512], &[512, 1]], &[], [true; 3]), both | FLIPPED | VECTOR_D);
    assert_eq!(
        flags(&[&[8, 512], &[512, 512]], &[], [false, true, true]),
        VECTOR_L | L_IS_B | FLIPPED | VECTOR_D
    );
    assert_eq!(flags(&[&[8, 512], &[512, 512]], &[], [true, false, false]), VECTOR_S | L_IS_B | FLIPPED);
    assert_eq!(
        flags(&[&[3, 8, 510], &[3, 510, 512]], &[], [true; 3]),
        VECTOR_L | L_IS_B | FLIPPED | VECTOR_D
    );
}

#[test]
fn plans_name_kernels_that_exist_and_cover_all_terms() {
    let sizes = [1, 3, 8, 17, 64, 130, 1000, 5000, 70_000];
    for multiprocessors in [1, 8, 132] {
        for (index, (m, n)) in sizes.iter().flat_map(|&m| sizes.map(|n| (m, n))).enumerate() {
            let k = 96 + index * 331 % 4100;
            for (a, b, options) in [
                ([m, k], [k, n], &[][..]),
                ([m, k], [n, k], &["transB"]),
                ([k, m], [k, n], &["transA"]),
                ([k, m], [n, k], &["transA", "transB"]),
            ] {
                let product = product(&[&a, &b], options);
                for level in [80, 90] {
                    let card = Card { multiprocessors, level, ..Card::H200 };
                    let Some(plan) = plan(&product, Setting { card, ..H200 }, Precision::Highest) else {
                        assert!(options == ["transA"] && m.min(n) > 1, "{m} {n} {k} {options:?}");
                        continue;
                    };
                    let (_, entry) = kernel(&plan.kernel, level).unwrap();
                    let words = &plan.words;
                    assert_eq!(entry.parameters.last(), Some(&Parameter::Block(words.len() * 4)));
                    let terms = plan.chunks * 16;
                    assert!(terms * plan.splits >= k && terms * (plan.splits - 1) < k, "{plan:?}");
                    assert!(plan.splits == 1 || plan.tiles() <= MOST_TILES);
                    assert!(plan.tile == &TALL || plan.shared() <= 48 * 1024, "{plan:?}");
                }
            }
        }
    }
}
