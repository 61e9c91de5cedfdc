//! Strided copies on the CPU. Elements are moved as whole numbers of their size.

use super::walk::Walk;
use crate::cpu::for_pieces;
use crate::tensor::{HostView, HostViewMut};
use bytemuck::Pod;

/// Calls a generic function with the whole-number type of that many bytes.
macro_rules! for_unit {
    ($bytes:expr, $function:ident ( $($argument:expr),* $(,)? )) => {
        match $bytes {
            1 => $function::<u8>($($argument),*),
            2 => $function::<u16>($($argument),*),
            4 => $function::<u32>($($argument),*),
            _ => $function::<u64>($($argument),*),
        }
    };
}
pub(in crate::ops) use for_unit;

/// Copies along a walk whose target is all of `y` in order.
pub fn copy(walk: &Walk, x: &HostView, y: &mut HostViewMut) {
    for_unit!(x.dtype.size(), copy_units(walk, x, y));
}

fn copy_units<T: Pod + Send + Sync>(walk: &Walk, x: &HostView, y: &mut HostViewMut) {
    let x = x.as_slice::<T>();
    let inner = walk.axes[0];
    for_pieces(y.as_slice_mut::<T>(), 1, if inner.x == 1 { 1 } else { 4 }, |start, piece| {
        let (mut index, mut rest) = (start, piece);
        while !rest.is_empty() {
            let length = (inner.size - index % inner.size).min(rest.len());
            let (run, tail) = rest.split_at_mut(length);
            let from = walk.x.wrapping_add_signed(walk.source(index));
            if inner.x == 1 {
                run.copy_from_slice(&x[from..from + length]);
            } else {
                let places = (0..length as isize).map(|k| from.wrapping_add_signed(k * inner.x));
                run.iter_mut().zip(places).for_each(|(y, place)| *y = x[place]);
            }
            index += length;
            rest = tail;
        }
    });
}

/// Writes stretches of several arrays one after the other, row by row: `parts` holds each array and the elements of its
/// rows.
pub fn join(parts: &[(&HostView, usize)], y: &mut HostViewMut) {
    for_unit!(y.dtype.size(), join_units(parts, y));
}

fn join_units<T: Pod + Send + Sync>(parts: &[(&HostView, usize)], y: &mut HostViewMut) {
    let row: usize = parts.iter().map(|(_, length)| length).sum();
    let parts: Vec<(&[T], usize)> = parts.iter().map(|(x, length)| (x.as_slice::<T>(), *length)).collect();
    for_pieces(y.as_slice_mut::<T>(), row, 1, |start, piece| {
        for (index, target) in piece.chunks_mut(row).enumerate() {
            let (line, mut rest) = (start / row + index, target);
            for (x, length) in &parts {
                let (part, tail) = rest.split_at_mut(*length);
                part.copy_from_slice(&x[line * length..][..*length]);
                rest = tail;
            }
        }
    });
}
