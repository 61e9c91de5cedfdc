"""Checks of the committed PTX: is it what the sources give, and does it assemble without spills."""

import hashlib
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / 'kernels'
PTX = KERNELS / 'ptx'
COMPILER = 'NVRTC 12.0.140'

# Every architecture that a level has to assemble for.
CLAIMS = {
    'sm_75': ('sm_75', 'sm_80', 'sm_86', 'sm_89', 'sm_90', 'sm_100', 'sm_120'),
    'sm_80': ('sm_80', 'sm_86', 'sm_89', 'sm_90', 'sm_100', 'sm_120'),
    'sm_90a': ('sm_90a',),
}
# sm_90a needs 8.0 (driver 525); the others load from driver 450 on.
PTX_VERSION = {'sm_75': '7.0', 'sm_80': '7.0', 'sm_90a': '8.0'}
NEWER_ONLY = ('sm_100', 'sm_120')


def flags(level):
    """The compiler options of a level, as recorded in the head of its PTX."""
    return [f'--gpu-architecture={level.replace("sm_", "compute_")}', '--std=c++17']


def families():
    """Maps each family's name to the levels on its source's first line."""
    found = {}
    for source in sorted(KERNELS.glob('*.cu')):
        first = source.read_text(encoding='utf-8').split('\n', 1)[0]
        match = re.fullmatch(r'// levels:((?: sm_\w+)+)', first.rstrip())
        levels = match.group(1).split() if match else []
        if not levels or any(level not in CLAIMS for level in levels):
            raise SystemExit(f'{source}: the first line must be "// levels: ..." with levels out of {", ".join(CLAIMS)}')
        found[source.stem] = levels
    return found


def sources(family):
    """The family's source and every header that it reaches, main file first, headers in sorted order."""
    main = KERNELS / f'{family}.cu'
    seen, todo = set(), [main]
    while todo:
        file = todo.pop()
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', file.read_text(encoding='utf-8'), re.M):
            near, common = file.parent / name, KERNELS / name
            header = (near if near.exists() else common).resolve()
            if header.exists() and header not in seen:
                seen.add(header)
                todo.append(header)
    return [main, *sorted(seen)]


def source_digest(family):
    """sha256 over names and contents, whatever the checkout's line endings."""
    digest = hashlib.sha256()
    for file in sources(family):
        text = file.read_bytes().replace(b'\r\n', b'\n')
        digest.update(f'{file.relative_to(KERNELS).as_posix()} {len(text)}\n'.encode())
        digest.update(text)
    return digest.hexdigest()


def head(family, level, body):
    """The comment lines above the PTX proper."""
    return (
        f'// {family} for {level}. Written by scripts/kernels.py: change the source, not this file.\n'
        f'// compiler: {COMPILER} {" ".join(flags(level))}\n'
        f'// sources: sha256 {source_digest(family)}\n'
        f'// body: sha256 {hashlib.sha256(body.encode()).hexdigest()}\n'
    )


def ptx_path(family, level):
    return PTX / f'{family}.{level}.ptx'


def verify(family, level):
    """Returns what is wrong with a committed PTX file, or None."""
    path = ptx_path(family, level)
    if not path.exists():
        return f'{path.name} is missing'
    text = path.read_bytes().replace(b'\r\n', b'\n').decode()
    lines = text.split('\n')
    wanted = head(family, level, '\n'.join(lines[4:])).split('\n')
    for what, got, want in zip(('name', 'compiler', 'sources', 'body'), lines, wanted):
        if got != want:
            return f'{path.name} is stale ({what}): run npm run kernels'
    return None


def orphans(levels_of):
    """Committed PTX files that no source accounts for."""
    known = {ptx_path(family, level).name for family, levels in levels_of.items() for level in levels}
    return sorted(path.name for path in PTX.glob('*.ptx') if path.name not in known)


def assemble_one(job):
    """Runs one assembler on one file for one architecture; returns a complaint or None."""
    ptxas, path, sm = job
    with tempfile.NamedTemporaryFile(suffix='.cubin') as out:
        done = subprocess.run(
            [ptxas, '-v', f'-arch={sm}', str(path), '-o', out.name], capture_output=True, text=True, check=False)
    log = done.stdout + done.stderr
    where = f'{path.name} for {sm}'
    if done.returncode != 0:
        return f'{where}: {log.strip()[:600]}'
    bad = re.search(r'C75\d\d|warning', log)
    if bad:
        line = next(text for text in log.split('\n') if bad.group(0) in text)
        return f'{where}: {line.strip()}'
    for entry, stores, loads in re.findall(
            r'properties for (\S+)\n.*?(\d+) bytes spill stores, (\d+) bytes spill loads', log):
        if stores != '0' or loads != '0':
            return f'{where}: {entry} spills {stores} bytes'
    return None


def assemble(family, levels, older, newer, pool_size):
    """Runs both assemblers for every architecture that takes a level of the family; returns the complaints."""
    jobs = []
    for level in levels:
        # From sm_80 on the higher level is taken.
        lower = level == 'sm_75' and 'sm_80' in levels
        for sm in CLAIMS[level][:1] if lower else CLAIMS[level]:
            tools = (newer,) if sm in NEWER_ONLY else (older, newer)
            jobs += [(tool, ptx_path(family, level), sm) for tool in tools]
    with ThreadPoolExecutor(pool_size) as pool:
        return [complaint for complaint in pool.map(assemble_one, jobs) if complaint], len(jobs)
