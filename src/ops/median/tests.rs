use crate::kernels::columns::{Even, NanPolicy};
use crate::ops::{Call, Meta, Raw};
use crate::{DType, Error, Tensor};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Plain values, ties, infinities, zeros of both signs, NaN with payloads, by the column's class.
    fn value(&mut self, class: usize) -> f64 {
        let plain = (self.next() >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
        let roll = self.next() % 10;
        match class % 7 {
            1 => (plain * 5.0).floor(),
            2 if roll < 3 => f64::from_bits(0x7ff0_0000_0000_0000 | (1 << 40) | ((roll & 1) << 63)),
            3 if roll < 6 => f64::INFINITY * if roll < 3 { 1.0 } else { -1.0 },
            4 if roll < 7 => 0.0 * if roll < 3 { 1.0 } else { -1.0 },
            5 if roll < 9 => f64::NAN,
            6 => 1e-310 * plain,
            _ => plain,
        }
    }
}

fn median(rows: &Tensor, even: &str, nan: &str) -> crate::Result<Tensor> {
    let options = [("even".to_string(), Raw::Text(even.into())), ("nan".to_string(), Raw::Text(nan.into()))];
    let call = Call::new("median", vec![Some(rows.meta().clone())], &options)?;
    Ok(call.run_cpu(&[Some(rows.clone())])?.remove(0))
}

/// The definition, on sorted columns; `None` where the call is an error.
fn oracle(rows: &[Vec<f64>], even: Even, nan: NanPolicy, single: bool) -> Option<Vec<f64>> {
    let searches = matches!(nan, NanPolicy::Drop | NanPolicy::Reject);
    let kept: Vec<&Vec<f64>> =
        rows.iter().filter(|row| !searches || row.iter().all(|v| v.is_finite())).collect();
    if kept.is_empty() || (nan == NanPolicy::Reject && kept.len() < rows.len()) {
        return None;
    }
    let pick = |column: usize| {
        let mut values: Vec<f64> = kept.iter().map(|row| row[column]).collect();
        let nans = values.iter().filter(|value| value.is_nan()).count();
        if nan == NanPolicy::Omit {
            values.retain(|value| !value.is_nan());
        }
        if values.is_empty() || (nan == NanPolicy::Propagate && nans > 0) {
            return f64::NAN;
        }
        values.sort_by(|a, b| {
            a.is_nan().cmp(&b.is_nan()).then(a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal))
        });
        let (lower, upper) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        match even {
            Even::Upper => upper,
            Even::Lower => lower,
            Even::Mean if values.len() % 2 == 1 => upper,
            Even::Mean if single => f64::from(0.5 * lower as f32 + 0.5 * upper as f32),
            Even::Mean => 0.5 * lower + 0.5 * upper,
        }
    };
    Some((0..rows[0].len()).map(pick).collect())
}

fn check(n: usize, d: usize, even: Even, nan: NanPolicy, single: bool, random: &mut Random) {
    let spoil = nan != NanPolicy::Drop || n < 3;
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|row| {
            (0..d).map(|column| random.value(if spoil || row % 4 == 1 { column } else { 0 })).collect()
        })
        .collect();
    if single {
        rows.iter_mut().flatten().for_each(|value| *value = f64::from(*value as f32));
    }
    let flat: Vec<f64> = rows.iter().flatten().copied().collect();
    let tensor = if single {
        let flat: Vec<f32> = flat.iter().map(|&value| value as f32).collect();
        Tensor::from_slice(DType::F32, [n, d], &flat).unwrap()
    } else {
        Tensor::from_slice(DType::F64, [n, d], &flat).unwrap()
    };
    let what = format!("n = {n}, d = {d}, {even:?}, {nan:?}, single: {single}");
    let got = median(&tensor, even.word(), nan.word());
    let Some(expected) = oracle(&rows, even, nan, single) else {
        assert!(matches!(got, Err(Error::InvalidArgument(_))), "{what}");
        return;
    };
    let got = got.unwrap();
    let got: Vec<f64> = if single {
        got.host_view().unwrap().as_slice::<f32>().iter().map(|&value| f64::from(value)).collect()
    } else {
        got.host_view().unwrap().as_slice::<f64>().to_vec()
    };
    for (column, (got, expected)) in got.iter().zip(&expected).enumerate() {
        assert!(
            got == expected || (got.is_nan() && expected.is_nan()),
            "{what}, {column}: {got} not {expected}"
        );
    }
}

#[test]
fn medians_follow_the_definition() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for n in [1, 2, 3, 4, 5, 9, 16, 31, 64, 127, 128, 129, 300] {
        for even in [Even::Upper, Even::Lower, Even::Mean] {
            for nan in ["last", "omit", "propagate", "drop", "reject"] {
                let nan = NanPolicy::from_word(nan).unwrap();
                check(n, 35, even, nan, n % 2 == 0, &mut random);
            }
        }
    }
    check(5, 0, Even::Upper, NanPolicy::Last, true, &mut random);
    check(7, 5000, Even::Mean, NanPolicy::Omit, false, &mut random);
    check(3000, 17, Even::Mean, NanPolicy::Omit, true, &mut random);
}

#[test]
fn the_known_example_and_the_canonical_nan() {
    let rows =
        Tensor::from_slice(DType::F64, [3, 3], &[1.0, 5.0, 3.0, 2.0, 2.0, 8.0, 9.0, 1.0, 4.0]).unwrap();
    assert_eq!(
        median(&rows, "upper", "last").unwrap().host_view().unwrap().as_slice::<f64>(),
        [2.0, 2.0, 4.0]
    );
    let bits = f32::from_bits(0xff81_2345);
    let rows = Tensor::from_slice(DType::F32, [2, 2], &[bits, 1.0, bits, 3.0]).unwrap();
    let result = median(&rows, "upper", "last").unwrap();
    assert_eq!(result.host_view().unwrap().as_slice::<u32>(), [0x7fc0_0000, 3.0f32.to_bits()]);
}

#[test]
fn refusals_name_the_place() {
    let values = [1.0f32, 2.0, 3.0, f32::INFINITY, f32::NAN, 4.0];
    let rows = Tensor::from_slice(DType::F32, [3, 2], &values).unwrap();
    let text = median(&rows, "upper", "reject").err().unwrap().to_string();
    assert!(text.contains("row 1, coordinate 1"), "{text}");
    let kept = median(&rows, "upper", "drop").unwrap();
    assert_eq!(kept.host_view().unwrap().as_slice::<f32>(), [1.0, 2.0]);
    for dims in [vec![0, 3], vec![3], vec![1, 2, 3]] {
        let refused = Call::new("median", vec![Some(Meta::new(DType::F32, dims))], &[]);
        assert!(matches!(refused, Err(Error::ShapeMismatch(_))));
    }
}
