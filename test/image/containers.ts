import { execFile, spawn, type ChildProcess } from 'node:child_process';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { parentOf } from '../../deploy/local/stack/processes.js';
import { until } from '../chaos/harness/wait.js';
import { readConfig, readCopy, readDockerfile, type ImageConfig } from './dockerfile.js';

/**
 * Builds and runs the image without a builder or daemon, with features of the kernel: a separate root file system,
 * namespaces, and a user without root. The replacements are:
 *
 * - The base image is this machine, which must be a Debian, or the root in `SECKILL_IMAGE_BASE`, such as one made by
 *   debootstrap. The Node version of the Dockerfile comes from the npm registry into /usr/local.
 * - COPY and RUN of the build stage run one after another. RUN sees the base, /build and /image.
 * - A container has the built root read-only, its own /proc and /dev, and the network of this machine.
 */

const run = promisify(execFile);
const ARTIFACTS = join(REPO_DIR, '.stack/artifacts');
const BUILD_MAX_MS = 900_000;
/** Longer than a program needs to stop. */
const STOP_MAX_MS = 25_000;
const isRoot = process.getuid?.() === 0;
/** Lets a user without root mount, in a namespace that makes the user root. */
const AS_ROOT = isRoot ? [] : ['--user', '--map-root-user'];
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface Image {
  /** The root file system. */
  readonly root: string;
  readonly config: ImageConfig;
}

/**
 * Runs the Dockerfile of this checkout.
 * @param folder an empty folder for all files
 * @param say receives a line for each step
 * @throws Error with the output of a failed step
 */
export async function buildImage(folder: string, say: (line: string) => void): Promise<Image> {
  const [build, last, ...more] = readDockerfile(readFileSync(join(REPO_DIR, 'Dockerfile'), 'utf8'));
  if (build === undefined || last === undefined || more.length > 0)
    throw new Error('the Dockerfile must have two stages');
  const config = readConfig(last, { stage: build.name, folder: '/image' });
  const [, version = ''] = /^node:([\d.]+)-bookworm-slim$/.exec(build.from) ?? [];
  const base = process.env.SECKILL_IMAGE_BASE ?? '/';
  const node = await nodeOf(version);
  say(`FROM ${build.from}, which is ${base} with the Node ${version} of the npm registry`);
  const view = join(folder, 'build-root');
  for (const own of ['build', 'image', 'tmp']) mkdirSync(join(view, own), { recursive: true });
  let workdir = '/';
  for (const { word, text } of build.instructions) {
    say(`${word} ${text}`);
    if (word === 'WORKDIR') workdir = text;
    else if (word === 'COPY') copy(text, join(view, workdir));
    else if (word === 'RUN') await runInView({ view, base, node, workdir }, text);
    else throw new Error(`${word} is not supported in the build stage`);
  }
  return { root: join(view, 'image'), config };
}

/** Copies as a builder does: the contents of a folder, and files by their names into a target that ends with a slash. */
function copy(text: string, workdir: string): void {
  const { sources, target } = readCopy(text);
  for (const source of sources) {
    const from = join(REPO_DIR, source);
    const to = target.endsWith('/') ? join(workdir, target, basename(source)) : join(workdir, target);
    cpSync(from, to, { recursive: true });
  }
}

interface View {
  readonly view: string;
  readonly base: string;
  /** The folder that is mounted as /usr/local. */
  readonly node: string;
  readonly workdir: string;
}

const SHOW_BASE = `
  for entry in "$BASE"/*; do
    name=$(basename "$entry")
    case $name in build | image | tmp) continue ;; esac
    if [ -L "$entry" ]; then [ -L "$VIEW/$name" ] || ln -s "$(readlink "$entry")" "$VIEW/$name"
    elif [ -d "$entry" ]; then mkdir -p "$VIEW/$name"; mount --rbind "$entry" "$VIEW/$name"; fi
  done
  for system in proc dev; do
    if [ "$BASE" != / ]; then mkdir -p "$VIEW/$system"; mount --rbind /$system "$VIEW/$system"; fi
  done
  mount --bind "$NODE" "$VIEW/usr/local"
  exec chroot "$VIEW" /bin/sh -ec "cd $WORKDIR && $LINE"`;

async function runInView({ view, base, node, workdir }: View, line: string): Promise<void> {
  const args = ['--mount', ...AS_ROOT, 'sh', '-ec', SHOW_BASE];
  // the registries and certificates of this machine, without variables of npm and the test run
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_OPTIONS|NODE_V8)/.test(name)),
  );
  const own = { VIEW: view, BASE: base, NODE: node, WORKDIR: workdir, LINE: line, PATH };
  try {
    await run('unshare', args, { env: { ...env, ...own }, timeout: BUILD_MAX_MS, maxBuffer: 64 * 1024 ** 2 });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { readonly stdout?: string; readonly stderr?: string };
    throw new Error(`RUN ${line} failed:\n${stdout}${stderr}`, { cause: error });
  }
}

/** Fetches Node and npm once, laid out as in /usr/local of the base image. @returns the folder */
async function nodeOf(version: string): Promise<string> {
  const folder = join(ARTIFACTS, `node-${version}`);
  if (existsSync(folder)) return folder;
  mkdirSync(ARTIFACTS, { recursive: true });
  const work = mkdtempSync(join(ARTIFACTS, '.fetching-node-'));
  const arch = process.arch === 'arm64' ? 'arm64' : 'x64';
  try {
    const packages = [`node-linux-${arch}@${version}`, 'npm@11'];
    await run('npm', ['i', '--prefix', work, '--ignore-scripts', '--no-audit', '--no-fund', ...packages]);
    const local = join(work, 'local');
    mkdirSync(join(local, 'bin'), { recursive: true });
    const installed = join(work, 'node_modules', `node-linux-${arch}`);
    cpSync(join(installed, 'bin/node'), join(local, 'bin/node'));
    cpSync(join(installed, 'LICENSE'), join(local, 'LICENSE'));
    cpSync(join(work, 'node_modules/npm'), join(local, 'lib/node_modules/npm'), { recursive: true });
    symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm'));
    if (!existsSync(folder)) renameSync(local, folder);
    return folder;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Lists the files of an image by path with their modes. A link contains ` → `. */
export function listImage(root: string): Map<string, { readonly mode: number; readonly isFolder: boolean }> {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).sort();
  return new Map(
    names.map((name) => {
      const stat = lstatSync(join(root, name));
      const path = stat.isSymbolicLink() ? `/${name} → ${readlinkSync(join(root, name))}` : `/${name}`;
      return [path, { mode: stat.mode & 0o7777, isFolder: stat.isDirectory() }];
    }),
  );
}

/** Mounts /proc, /sys and /dev like a container runtime, and makes the root, even /tmp, read-only. */
const START = `
  root=$1 etc=$2 workdir=$3 user=$4 mapped=$5
  shift 5
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount -t tmpfs -o mode=755 tmpfs "$root/dev"
  for device in null zero full random urandom; do
    : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
  done
  for file in hosts resolv.conf; do mount --bind "$etc/$file" "$root/etc/$file"; done
  mount -o remount,bind,ro "$root"
  if [ "$mapped" = yes ]; then
    exec unshare --user --map-user="$user" --map-group="$user" --root="$root" --wd="$workdir" -- "$@"
  fi
  exec unshare --root="$root" --wd="$workdir" --setgid="$user" --setuid="$user" -- "$@"`;

export interface ContainerEnd {
  readonly code: number | null;
  readonly output: string;
}

/** Runs one process of an image as the first of its own process namespace. */
export class Container {
  readonly end: Promise<ContainerEnd>;
  readonly #child: ChildProcess;
  #output = '';

  /** @param command the whole command, entrypoint included @param etc a folder with `hosts` and `resolv.conf` */
  constructor({ root, config }: Image, command: readonly string[], env: NodeJS.ProcessEnv, etc: string) {
    for (const point of ['proc', 'sys', 'dev']) mkdirSync(join(root, point), { recursive: true });
    for (const file of ['hosts', 'resolv.conf']) writeFileSync(join(root, 'etc', file), '');
    const parts = [root, etc, config.workdir, String(config.user), isRoot ? 'no' : 'yes'];
    const namespaces = ['--mount', '--pid', '--fork', '--kill-child', ...AS_ROOT];
    const args = [...namespaces, 'sh', '-ec', START, 'sh', ...parts, ...command];
    this.#child = spawn('unshare', args, { env: { PATH, ...config.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
    }
    this.end = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('close', (code) => resolve({ code, output: this.#output }));
    });
  }

  /** The output so far, stdout and stderr. */
  get output(): string {
    return this.#output;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Returns the process id outside the namespace. */
  async pid(): Promise<number> {
    let pid: number | undefined;
    await until('the process of the container', () => {
      const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
      pid = pids.map(Number).find((one) => parentOf(one) === this.#child.pid);
      return pid !== undefined;
    });
    return pid as number;
  }

  /** Sends SIGTERM, and SIGKILL if the process does not stop. */
  async stop(): Promise<ContainerEnd> {
    if (this.running) {
      process.kill(await this.pid(), 'SIGTERM');
      const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_MAX_MS);
      await this.end;
      clearTimeout(timer);
    }
    return this.end;
  }
}
