//! The blocks of a cluster, which run in turn; most clusters are one block.

use super::Launch;
use super::block::{Block, MOST_IDLE, Progress, Running};
use super::cx::Cx;
use crate::Fault;

/// Instructions of a block before the next one of its cluster has its turn.
const TURN: u64 = 100_000;

#[derive(Default)]
pub struct Gang {
    members: Vec<Running>,
    /// Turns of all members in which nothing changed.
    idle: u32,
}

impl Gang {
    /// Makes this the cluster of that number.
    pub fn start(&mut self, launch: &Launch<'_>, number: u64) {
        let size = launch.cluster.iter().product::<u32>() as usize;
        self.members.resize_with(size, Running::default);
        for (rank, member) in self.members.iter_mut().enumerate() {
            member.start(launch, place(launch, number, rank as u32), rank as u32);
        }
        self.idle = 0;
    }

    pub fn executed(&self) -> u64 {
        self.members.iter().map(|member| member.executed).sum()
    }

    /// Runs about `budget` instructions.
    pub fn advance(&mut self, cx: &mut Cx<'_>, budget: u64) -> Result<Progress, Box<Fault>> {
        if let [only] = &mut self.members[..] {
            return only.advance(cx, budget);
        }
        let mut used = 0;
        loop {
            let (mut over, mut quiet) = (true, true);
            for rank in 0..self.members.len() {
                if self.members[rank].block.ended {
                    continue;
                }
                over = false;
                match self.turn(cx, rank)? {
                    Progress::Done => {
                        self.members[rank].block.ended = true;
                        quiet = false;
                    }
                    Progress::More => quiet = false,
                    Progress::Idle => {}
                }
                quiet &= !self.meet();
                used += TURN;
            }
            if over {
                return Ok(Progress::Done);
            }
            self.idle = if quiet { self.idle + 1 } else { 0 };
            if self.idle > MOST_IDLE
                && let Some(member) = self.members.iter_mut().find(|member| !member.block.ended)
            {
                std::mem::swap(&mut cx.block, &mut member.block);
                return Err(member.stuck(cx));
            }
            if used >= budget {
                return Ok(Progress::More);
            }
        }
    }

    /// A block's turn, in which it reaches the shared memory of the others.
    fn turn(&mut self, cx: &mut Cx<'_>, rank: usize) -> Result<Progress, Box<Fault>> {
        cx.peers.resize_with(self.members.len(), Block::default);
        self.lend(cx, rank);
        let result = self.members[rank].advance(cx, TURN);
        self.lend(cx, rank);
        cx.peers.clear();
        result
    }

    fn lend(&mut self, cx: &mut Cx<'_>, rank: usize) {
        let others = self.members.iter_mut().zip(&mut cx.peers).enumerate().filter(|(n, _)| *n != rank);
        others.for_each(|(_, (member, peer))| std::mem::swap(&mut member.block, peer));
    }

    /// Opens the cluster's barrier where all threads have come.
    fn meet(&mut self) -> bool {
        let blocks = || self.members.iter().map(|member| &member.block);
        let complete = blocks().all(|block| block.cluster.is_complete(block.threads, block.exited));
        if !complete || !blocks().any(|block| block.cluster.is_used()) {
            return false;
        }
        for member in &mut self.members {
            member.block.cluster.turn();
            member.block.events += 1;
        }
        true
    }
}

/// The index of a cluster's block in the grid.
fn place(launch: &Launch<'_>, number: u64, rank: u32) -> [u32; 3] {
    let [kx, ky, _] = launch.cluster;
    let clusters: [u64; 3] = std::array::from_fn(|n| u64::from(launch.grid[n] / launch.cluster[n]));
    let at = [number % clusters[0], number / clusters[0] % clusters[1], number / clusters[0] / clusters[1]];
    let within = [rank % kx, rank / kx % ky, rank / kx / ky];
    std::array::from_fn(|n| at[n] as u32 * launch.cluster[n] + within[n])
}
