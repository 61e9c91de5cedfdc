#!/usr/bin/env python3
"""Compiles kernels/*.cu to the PTX files in kernels/ptx.

    kernels.py [family ...]      compile what is stale (--force: everything)
    kernels.py --check           verify that the committed PTX matches the sources; needs no compiler
    kernels.py --assemble        assemble the committed PTX for every architecture claimed; fails on spills

The compiler and the assemblers are pinned PyPI packages, kept in .cache/kernels.
"""

import argparse
import ctypes
import os
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import check_ptx  # noqa: E402

CACHE = check_ptx.ROOT / '.cache' / 'kernels'
SCRIPTS = check_ptx.ROOT / 'scripts'


def install(folder, requirements):
    """Installs a requirements file into a folder of its own, once; returns the folder."""
    target, wanted = CACHE / folder, (SCRIPTS / requirements).read_text(encoding='utf-8')
    stamp = target / 'installed.txt'
    if stamp.exists() and stamp.read_text(encoding='utf-8') == wanted:
        return target
    shutil.rmtree(target, ignore_errors=True)
    print(f'installing {requirements}', flush=True)
    subprocess.run(
        [sys.executable, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps',
         '--target', str(target), '-r', str(SCRIPTS / requirements)],
        env={**os.environ, 'PIP_ROOT_USER_ACTION': 'ignore'}, check=True)
    stamp.write_text(wanted, encoding='utf-8')
    return target


class Compiler:
    """NVRTC through ctypes."""

    def __init__(self):
        libraries = install('driver-525', 'requirements.txt') / 'nvidia' / 'cuda_nvrtc' / 'lib'
        # NVRTC looks for its builtins by name alone, so they have to be loaded first.
        ctypes.CDLL(str(next(libraries.glob('libnvrtc-builtins.so*'))), mode=ctypes.RTLD_GLOBAL)
        self.nvrtc = ctypes.CDLL(str(next(libraries.glob('libnvrtc.so*'))))

    def text(self, program, what):
        size = ctypes.c_size_t()
        getattr(self.nvrtc, f'nvrtcGet{what}Size')(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self.nvrtc, f'nvrtcGet{what}')(program, buffer)
        return buffer.value.decode()

    def compile(self, family, level):
        """Returns (ptx, log); ptx is None when the compiler refused."""
        source = (check_ptx.KERNELS / f'{family}.cu').read_text(encoding='utf-8').encode()
        options = [*check_ptx.flags(level), f'--include-path={check_ptx.KERNELS}']
        program = ctypes.c_void_p()
        self.nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, f'{family}.cu'.encode(), 0, None, None)
        argv = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        failed = self.nvrtc.nvrtcCompileProgram(program, len(options), argv)
        log = self.text(program, 'ProgramLog').strip()
        ptx = None if failed or 'warning' in log else self.text(program, 'PTX')
        self.nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        return ptx, log


def strip(ptx, level):
    """Drops comments, blank lines, line tables and unused constants, and lowers the PTX version to what the level needs."""
    ptx = re.sub(r'/\*.*?\*/', '', ptx, flags=re.S)
    lines = (line.split('//', 1)[0].rstrip() for line in ptx.split('\n'))
    # nv::target's constants come with every program and are never used.
    dropped = re.compile(r'\s*\.(loc|file)\s|\.global .*nv6target\d')
    kept = [line for line in lines if line and not dropped.match(line)]
    body = '\n'.join(kept) + '\n'
    return re.sub(r'^\.version \d+\.\d+$', f'.version {check_ptx.PTX_VERSION[level]}', body, count=1, flags=re.M)


def build(family, levels, compiler):
    """Compiles one family for its levels; returns the complaints."""
    complaints = []
    for level in levels:
        ptx, log = compiler.compile(family, level)
        if ptx is None:
            complaints.append(log)
            continue
        body = strip(ptx, level)
        path = check_ptx.ptx_path(family, level)
        partial = path.with_suffix(f'.{os.getpid()}.tmp')
        partial.write_text(check_ptx.head(family, level, body) + body, encoding='utf-8', newline='\n')
        partial.replace(path)
    return complaints


def run(options, levels_of):
    """Yields (family, what was done, complaints) for each family."""
    compiler, tools = None, None
    for family, levels in levels_of.items():
        stale = [fault for level in levels if (fault := check_ptx.verify(family, level))]
        if options.check:
            yield family, 'matches its source', stale
        elif options.assemble:
            if tools is None:
                tools = [str(install(*pair) / 'nvidia' / 'cuda_nvcc' / 'bin' / 'ptxas') for pair in (
                    ('driver-525', 'requirements.txt'), ('newer', 'requirements-newer.txt'))]
            if stale:
                yield family, '', stale
                continue
            complaints, count = check_ptx.assemble(family, levels, *tools, os.cpu_count() or 1)
            yield family, f'{count} assemblies, no spills', complaints
        elif stale or options.force:
            compiler = compiler or Compiler()
            yield family, 'compiled', build(family, levels, compiler)
        else:
            yield family, 'up to date', []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('family', nargs='*')
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--assemble', action='store_true')
    parser.add_argument('--force', action='store_true')
    options = parser.parse_args()
    every = check_ptx.families()
    unknown = [name for name in options.family if name not in every]
    if unknown:
        raise SystemExit(f'no such family: {", ".join(unknown)}')
    chosen = {name: every[name] for name in options.family or every}
    check_ptx.PTX.mkdir(exist_ok=True)

    passed, failed, start = 0, 0, time.monotonic()
    for family, done, complaints in run(options, chosen):
        now = time.monotonic()
        state = 'FAILED' if complaints else done
        print(f'{family:<16} {" ".join(chosen[family]):<20} {state} ({now - start:.1f} s)', flush=True)
        start = now
        for complaint in complaints:
            print(f'  {complaint}')
        passed, failed = passed + (not complaints), failed + bool(complaints)
    if not options.family:
        for name in check_ptx.orphans(check_ptx.families()):
            print(f'  kernels/ptx/{name} has no source: delete it')
            failed += 1
    print(f'{passed} passed, {failed} failed')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
