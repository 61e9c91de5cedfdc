//! The product's own kernels on the emulator, against plain loops.

mod rig;

use rig::Arg::{F32, F64, U32, U64, Words};
use rig::{Rig, close, close64, floats, noise};

type Unary = (&'static str, fn(f64) -> f64);

const UNARY: [Unary; 14] = [
    ("exp", f64::exp),
    ("log", f64::ln),
    ("sqrt", f64::sqrt),
    ("sin", f64::sin),
    ("cos", f64::cos),
    ("tanh", f64::tanh),
    ("sigmoid", |x| 1.0 / (1.0 + (-x).exp())),
    ("relu", |x| if x > 0.0 || x.is_nan() { x } else { 0.0 }),
    ("abs", f64::abs),
    ("neg", |x| -x),
    ("floor", f64::floor),
    ("ceil", f64::ceil),
    ("reciprocal", |x| 1.0 / x),
    ("softplus", |x| x.max(0.0) + (-x.abs()).exp().ln_1p()),
];

fn specials(n: usize) -> Vec<f64> {
    let mut x: Vec<f64> = noise(n, 3).into_iter().map(|x| x * 20.0).collect();
    x[..6].copy_from_slice(&[0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0]);
    x
}

#[test]
fn unary_functions_in_float32() {
    let rig = Rig::family("elementwise.sm_75");
    let mut covered = 0;
    for (name, f) in UNARY {
        let kernel = format!("{name}_f32");
        if rig.module.kernel(&kernel).is_none() {
            continue;
        }
        covered += 1;
        for (n, skew) in [(1000usize, 0), (1027, 4)] {
            let x: Vec<f32> = specials(n).into_iter().map(|x| x as f32).collect();
            let (a, y) = (rig.put_at(&x, skew), rig.empty(n * 4));
            let blocks = (n as u32).div_ceil(1024);
            rig.launch(&kernel, blocks, 256, 0, &[U64(a), U64(y), U64(n as u64), F32(0.0), F32(0.0)]);
            let want: Vec<f64> = x.iter().map(|&x| f(f64::from(x))).collect();
            close(&rig.get(y, n), &want, 2e-6);
        }
    }
    assert!(covered >= 10, "{covered} functions");
}

#[test]
fn unary_functions_in_float64() {
    let rig = Rig::family("elementwise_f64.sm_75");
    let n = 517;
    let mut x = specials(n);
    // Angles that need the long reduction, a function with a table in constant memory.
    x[10..14].copy_from_slice(&[1e22, -3e15, 7e10, 5e300]);
    let mut covered = 0;
    for (name, f) in UNARY {
        let kernel = format!("{name}_f64");
        if rig.module.kernel(&kernel).is_none() {
            continue;
        }
        covered += 1;
        let (a, y) = (rig.put(&x), rig.empty(n * 8));
        rig.launch(&kernel, 2, 256, 0, &[U64(a), U64(y), U64(n as u64), F64(0.0), F64(0.0)]);
        let want: Vec<f64> = x.iter().map(|&x| f(x)).collect();
        close64(&rig.get(y, n), &want, 4e-15);
    }
    assert!(covered >= 10, "{covered} functions");
}

#[test]
fn binary_arithmetic() {
    let rig = Rig::family("elementwise.sm_75");
    let n = 777;
    let (a, b) = (floats(n, 1), floats(n, 2));
    let (pa, pb, y) = (rig.put(&a), rig.put(&b), rig.empty(n * 4));
    for (name, f) in
        [("add", (|a, b| a + b) as fn(f32, f32) -> f32), ("mul", |a, b| a * b), ("div", |a, b| a / b)]
    {
        rig.launch(&format!("{name}_f32"), 1, 256, 0, &[U64(pa), U64(pb), U64(y), U64(n as u64)]);
        let want: Vec<f32> = a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect();
        assert_eq!(rig.get::<f32>(y, n), want, "{name}");
    }
}

fn softmax(x: &[f32]) -> Vec<f64> {
    let most = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let e: Vec<f64> = x.iter().map(|&x| (f64::from(x) - f64::from(most)).exp()).collect();
    let sum: f64 = e.iter().sum();
    e.into_iter().map(|e| e / sum).collect()
}

#[test]
fn softmax_in_all_row_forms() {
    let rig = Rig::family("softmax.sm_75");
    for (form, columns, threads, per_block) in
        [("lanes", 29, 256, 32), ("warp", 200, 256, 8), ("block", 1500, 256, 1), ("wide", 9001, 512, 1)]
    {
        let rows = 5usize;
        let x: Vec<f32> = floats(rows * columns, 7).into_iter().map(|x| x * 10.0).collect();
        let (a, y) = (rig.put(&x), rig.empty(x.len() * 4));
        let blocks = rows.div_ceil(per_block) as u32;
        let kernel = format!("softmax_f32_{form}");
        rig.launch(&kernel, blocks, threads, 0, &[U64(a), U64(y), U64(rows as u64), U32(columns as u32)]);
        let want: Vec<f64> = x.chunks(columns).flat_map(softmax).collect();
        close(&rig.get(y, x.len()), &want, 1e-6);
    }
}

#[test]
fn layer_norm_and_batch_norm() {
    let rig = Rig::family("layer_norm.sm_75");
    for (form, columns, threads, per_block) in
        [("lanes", 31, 256, 32), ("warp", 222, 256, 8), ("block", 1001, 128, 1)]
    {
        let rows = 6usize;
        let x = floats(rows * columns, 9);
        let (a, y) = (rig.put(&x), rig.empty(x.len() * 4));
        let (scale, bias) = (floats(columns, 10), floats(columns, 11));
        let (ps, pb) = (rig.put(&scale), rig.put(&bias));
        let kernel = format!("layerNorm_f32_{form}");
        let arguments = [U64(a), U64(ps), U64(pb), U64(y), U64(rows as u64), U32(columns as u32), F32(1e-5)];
        rig.launch(&kernel, rows.div_ceil(per_block) as u32, threads, 0, &arguments);
        let want: Vec<f64> = x
            .chunks(columns)
            .flat_map(|row| {
                let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / columns as f64;
                let variance =
                    row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / columns as f64;
                let root = (variance + 1e-5).sqrt();
                (0..columns)
                    .map(|c| (f64::from(row[c]) - mean) / root * f64::from(scale[c]) + f64::from(bias[c]))
                    .collect::<Vec<_>>()
            })
            .collect();
        close(&rig.get(y, x.len()), &want, 1e-5);
    }
    let rig = Rig::family("batch_norm.sm_75");
    let (images, channels, inner) = (3usize, 5usize, 13usize);
    let n = images * channels * inner;
    let (x, mean) = (floats(n, 1), floats(channels, 2));
    let variance: Vec<f32> = floats(channels, 3).into_iter().map(|x| x.abs() + 0.1).collect();
    let (px, pm, pv, y) = (rig.put(&x), rig.put(&mean), rig.put(&variance), rig.empty(n * 4));
    let size = |n: usize| [U64(n as u64), U64(u64::MAX / n as u64)];
    let arguments = [
        &[U64(px), U64(0), U64(0), U64(pm), U64(pv), U64(y), U64(n as u64)][..],
        &size(inner),
        &size(channels),
        &[F32(0.0)],
    ]
    .concat();
    rig.launch("batchNorm_f32", 1, 256, 0, &arguments);
    let want: Vec<f64> = (0..n)
        .map(|i| {
            let c = i / inner % channels;
            (f64::from(x[i]) - f64::from(mean[c])) / f64::from(variance[c]).sqrt()
        })
        .collect();
    close(&rig.get(y, n), &want, 1e-5);
}

#[test]
fn pooling_with_padding() {
    let rig = Rig::family("pool.sm_75");
    let (planes, h, w) = (3usize, 9usize, 11usize);
    let (oh, ow) = (5usize, 6usize);
    let x = floats(planes * h * w, 21);
    let n = planes * oh * ow;
    let (a, y) = (rig.put(&x), rig.empty(n * 4));
    let axis = |input: usize, output: usize, kernel: u32, stride: u32, pad: u32| {
        let magic = u64::MAX / output as u64;
        vec![input as u32, output as u32, kernel, stride, 1, pad, pad, 0, magic as u32, (magic >> 32) as u32]
    };
    let mut words = axis(1, 1, 1, 1, 0);
    words.extend(axis(h, oh, 3, 2, 1));
    words.extend(axis(w, ow, 3, 2, 1));
    words.extend([0, 0]);
    for kernel in ["maxPool_f32", "averagePool_f32"] {
        rig.launch(kernel, 1, 256, 0, &[U64(a), U64(y), U64(n as u64), Words(words.clone())]);
        let want: Vec<f64> = (0..n)
            .map(|i| {
                let (p, r, c) = (i / (oh * ow), i / ow % oh, i % ow);
                let rows = (2 * r).saturating_sub(1)..(2 * r + 2).min(h);
                let taps: Vec<f64> = rows
                    .flat_map(|y| ((2 * c).saturating_sub(1)..(2 * c + 2).min(w)).map(move |x| (y, x)))
                    .map(|(row, column)| f64::from(x[(p * h + row) * w + column]))
                    .collect();
                if kernel.starts_with("max") {
                    taps.iter().copied().fold(f64::NEG_INFINITY, f64::max)
                } else {
                    taps.iter().sum::<f64>() / taps.len() as f64
                }
            })
            .collect();
        close(&rig.get(y, n), &want, 1e-6);
    }
    let (rows, columns) = (4usize, 300usize);
    let x = floats(rows * columns, 5);
    let (a, y) = (rig.put(&x), rig.empty(rows * 4));
    let arguments = [U64(a), U64(y), U64(rows as u64), U64(columns as u64)];
    rig.launch("globalAveragePool_f32_warp", 1, 256, 0, &arguments);
    let want: Vec<f64> = x
        .chunks(columns)
        .map(|row| row.iter().map(|&x| f64::from(x)).sum::<f64>() / columns as f64)
        .collect();
    close(&rig.get(y, rows), &want, 1e-6);
}

/// `struct Matmul` for one product of packed matrices.
fn matmul_words(m: usize, n: usize, k: usize, flags: u32) -> Vec<u32> {
    let (transposed_a, transposed_b) = (flags & 1 != 0, flags & 2 != 0);
    let mut words = vec![m as u32, n as u32, k as u32, flags, 0, 1, k.max(1) as u32, 1];
    let pitches = [if transposed_a { m } else { k }, if transposed_b { k } else { n }, n, 0, 0, m * n, m * n];
    words.extend(pitches.into_iter().flat_map(|x| [x as u32, 0]));
    words
}

fn product(a: &[f64], b: &[f64], m: usize, n: usize, k: usize, flags: u32) -> Vec<f64> {
    let at = |i: usize, t: usize| if flags & 1 != 0 { a[t * m + i] } else { a[i * k + t] };
    let bt = |t: usize, j: usize| if flags & 2 != 0 { b[j * k + t] } else { b[t * n + j] };
    (0..m * n).map(|i| (0..k).map(|t| at(i / n, t) * bt(t, i % n)).sum()).collect()
}

#[test]
fn matrix_products_by_every_tile() {
    for level in ["gemm.sm_75", "gemm.sm_80"] {
        let rig = Rig::family(level);
        for (tile, rows, columns, threads) in [
            ("f32_128x256", 128, 256, 256),
            ("f32_128x64", 128, 64, 128),
            ("f32_64x64", 64, 64, 128),
            ("f32_32x32", 32, 32, 64),
            ("f64_64x64", 64, 64, 128),
            ("f64_32x32", 32, 32, 64),
        ] {
            let kernel = format!("matmul_{tile}");
            if rig.module.kernel(&kernel).is_none() {
                continue;
            }
            let threads = rig.module.kernel(&kernel).unwrap().max_threads.min(threads.max(64));
            for flags in 0..4 {
                let (m, n, k) = (rows + 5, columns - 3, 37);
                let (a, b) = (noise(m * k, 1), noise(k * n, 2));
                let blocks = (m.div_ceil(rows) * n.div_ceil(columns)) as u32;
                let words = Words(matmul_words(m, n, k, flags));
                if tile.starts_with("f32") {
                    let narrow = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<_>>();
                    let (pa, pb, y) = (rig.put(&narrow(&a)), rig.put(&narrow(&b)), rig.empty(m * n * 4));
                    let pointers = [U64(pa), U64(pb), U64(0), U64(0), U64(y)];
                    let tail = [F32(1.0), F32(0.0), F32(0.0), F32(0.0), words];
                    rig.launch(&kernel, blocks, threads, 0, &[&pointers[..], &tail].concat());
                    close(&rig.get(y, m * n), &product(&a, &b, m, n, k, flags), 1e-5);
                } else {
                    let (pa, pb, y) = (rig.put(&a), rig.put(&b), rig.empty(m * n * 8));
                    let pointers = [U64(pa), U64(pb), U64(0), U64(0), U64(y)];
                    let tail = [F64(1.0), F64(0.0), F64(0.0), F64(0.0), words];
                    rig.launch(&kernel, blocks, threads, 0, &[&pointers[..], &tail].concat());
                    close64(&rig.get(y, m * n), &product(&a, &b, m, n, k, flags), 1e-13);
                }
            }
        }
    }
}

/// `struct Conv` in two dims, one group.
struct Shape {
    images: usize,
    channels: usize,
    filters: usize,
    groups: usize,
    size: [usize; 2],
    kernel: usize,
    stride: usize,
    pad: usize,
}

impl Shape {
    fn output(&self, axis: usize) -> usize {
        (self.size[axis] + 2 * self.pad - self.kernel) / self.stride + 1
    }

    fn words(&self) -> Vec<u32> {
        let [h, w] = self.size;
        let (oh, ow) = (self.output(0), self.output(1));
        let (gi, go) = (self.channels / self.groups, self.filters / self.groups);
        let k = self.kernel;
        let sizes = [
            [self.images, self.groups, gi].to_vec(),
            vec![
                go,
                1,
                h,
                w,
                1,
                oh,
                ow,
                1,
                k,
                k,
                1,
                self.stride,
                self.stride,
                1,
                1,
                1,
                0,
                self.pad,
                self.pad,
            ],
        ];
        let mut words: Vec<u32> = sizes.concat().into_iter().map(|x| x as u32).collect();
        let tiles = gi.div_ceil(16) * k * k;
        words.extend([0, 0, 1, tiles as u32, gi.div_ceil(16) as u32, go.next_multiple_of(4) as u32]);
        words.extend([(self.images * oh * ow) as u32, 1]);
        words.extend([(self.images * self.filters * oh * ow) as u32, 0]);
        words
    }

    fn reference(&self, x: &[f32], w: &[f32]) -> Vec<f64> {
        let ([h, wd], oh, ow) = (self.size, self.output(0), self.output(1));
        let (gi, go, k) = (self.channels / self.groups, self.filters / self.groups, self.kernel);
        let mut y = Vec::new();
        for image in 0..self.images {
            for filter in 0..self.filters {
                for at in 0..oh * ow {
                    let mut sum = 0.0;
                    for c in 0..gi {
                        for tap in 0..k * k {
                            let row = (at / ow * self.stride + tap / k).wrapping_sub(self.pad);
                            let column = (at % ow * self.stride + tap % k).wrapping_sub(self.pad);
                            if row < h && column < wd {
                                let plane = image * self.channels + filter / go * gi + c;
                                sum += f64::from(x[(plane * h + row) * wd + column])
                                    * f64::from(w[(filter * gi + c) * k * k + tap]);
                            }
                        }
                    }
                    y.push(sum);
                }
            }
        }
        y
    }
}

#[test]
fn convolutions_packed_direct_and_depthwise() {
    for level in ["conv.sm_75", "conv.sm_80"] {
        let rig = Rig::family(level);
        let shape = Shape {
            images: 2,
            channels: 20,
            filters: 37,
            groups: 1,
            size: [9, 8],
            kernel: 3,
            stride: 1,
            pad: 1,
        };
        let (x, w) = (floats(2 * 20 * 72, 1), floats(37 * 20 * 9, 2));
        let want = shape.reference(&x, &w);
        let (px, pw, y) = (rig.put(&x), rig.put(&w), rig.empty(want.len() * 4));
        let packed = rig.empty(2 * 16 * 9 * 40 * 4);
        let words = Words(shape.words());
        rig.launch("conv_f32_pack", 2 * 9, 256, 0, &[U64(pw), U64(packed), words.clone()]);
        for (tile, rows, columns, threads) in
            [("32x32", 32, 32, 64), ("64x64", 64, 64, 128), ("64x128", 64, 128, 128)]
        {
            let blocks = 37usize.div_ceil(rows) * 144usize.div_ceil(columns);
            let arguments = [U64(px), U64(packed), U64(0), U64(y), F32(0.0), F32(0.0), words.clone()];
            rig.launch(&format!("conv_f32_{tile}"), blocks as u32, threads, 0, &arguments);
            close(&rig.get(y, want.len()), &want, 1e-5);
        }
        let arguments = [U64(px), U64(pw), U64(0), U64(y), F32(0.0), F32(0.0), words];
        rig.launch("conv_f32_direct", want.len().div_ceil(256) as u32, 256, 0, &arguments);
        close(&rig.get(y, want.len()), &want, 1e-5);
        let shape = Shape {
            images: 1,
            channels: 6,
            filters: 6,
            groups: 6,
            size: [12, 15],
            kernel: 3,
            stride: 2,
            pad: 1,
        };
        let (x, w) = (floats(6 * 180, 3), floats(6 * 9, 4));
        let want = shape.reference(&x, &w);
        let (px, pw, y) = (rig.put(&x), rig.put(&w), rig.empty(want.len() * 4));
        let arguments = [U64(px), U64(pw), U64(0), U64(y), F32(0.0), F32(0.0), Words(shape.words())];
        let threads = 6 * shape.output(0).div_ceil(4) * shape.output(1);
        rig.launch("conv_f32_depthwise_k3s2", threads.div_ceil(256) as u32, 256, 0, &arguments);
        close(&rig.get(y, want.len()), &want, 1e-5);
    }
}

fn median(column: &[f32]) -> f32 {
    let mut sorted = column.to_vec();
    sorted.sort_by(f32::total_cmp);
    sorted[sorted.len() / 2]
}

#[test]
fn medians_by_selection() {
    let rig = Rig::family("select.sm_75");
    for (kernel, n, threads, shared) in [
        ("held", 300usize, 32 * 300u32.div_ceil(16), 0),
        ("tile", 400, 1024, 32 * 400 * 4),
        ("stream", 700, 512, 0),
    ] {
        let d = 45usize;
        let rows = floats(n * d, 17);
        let (a, y) = (rig.put(&rows), rig.empty(d * 4));
        let arguments = [U64(a), U64(y), U64(d as u64), U64(d as u64), U64(0), U32(n as u32), U32(0), U32(0)];
        rig.launch(&format!("median_f32_{kernel}"), 2, threads, shared, &arguments);
        let want: Vec<f32> =
            (0..d).map(|c| median(&(0..n).map(|r| rows[r * d + c]).collect::<Vec<_>>())).collect();
        assert_eq!(rig.get::<f32>(y, d), want, "{kernel}");
    }
}

#[test]
fn first_nonfinite_coordinates() {
    let rig = Rig::family("nonfinite.sm_75");
    let (n, d) = (3usize, 20_000usize);
    let mut rows = floats(n * d, 1);
    rows[d + 12_345] = f32::NAN;
    rows[d + 15_000] = f32::INFINITY;
    rows[2 * d + 3] = f32::NEG_INFINITY;
    let (a, y) = (rig.put(&rows), rig.put(&[u64::MAX; 3]));
    let chunks = d.div_ceil(8192) as u32;
    let arguments = [U64(a), U64(y), U64(d as u64), U64(d as u64), U32(chunks)];
    rig.launch("nonfinite_f32", 3 * chunks, 256, 0, &arguments);
    assert_eq!(rig.get::<u64>(y, 3), [u64::MAX, 12_345, 3]);
}
