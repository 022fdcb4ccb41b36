import { execFile, spawn, type ChildProcess } from 'node:child_process';
import {
  closeSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterGranted } from '../../deploy/local/stack/granted-time.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { pickFreePort } from '../../deploy/local/stack/ports.js';
import { parentOf } from '../../deploy/local/stack/processes.js';
import { ask } from '../chaos/harness/http.js';
import { until } from '../chaos/harness/wait.js';
import { inPath, unpackDebian } from './debian-packages.js';

const run = promisify(execFile);
const SHIPPED = join(REPO_DIR, 'deploy/nginx');
const STOP_MAX_MS = 10_000;

export interface FoundNginx {
  readonly path: string;
  readonly openssl: string;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Finds an installed nginx, or fetches Debian's once. Must be called before tests that need nginx. @returns nginx, or
 * the reason why there is none
 */
export async function fetchNginx(): Promise<FoundNginx | { readonly missing: string }> {
  const installed = inPath('nginx') ?? inPath('../sbin/nginx');
  const openssl = inPath('openssl');
  if (installed !== undefined && openssl !== undefined) return { path: installed, openssl, env: process.env };
  const found = await unpackDebian({ name: 'nginx', packages: ['nginx', 'openssl'], withDependencies: true });
  if ('missing' in found) return found;
  const folder = found.folder;
  const libraries = ['x86_64-linux-gnu', 'aarch64-linux-gnu'].map((machine) => join(folder, 'usr/lib', machine));
  return {
    path: installed ?? join(folder, 'usr/sbin/nginx'),
    openssl: openssl ?? join(folder, 'usr/bin/openssl'),
    env: { ...process.env, LD_LIBRARY_PATH: libraries.join(':') },
  };
}

/** Address of an API. */
export interface Upstream {
  readonly port: number;
  readonly operatorsPort: number;
}

/**
 * The parts of site/ that a test chooses. All other configuration is used as shipped, except for a rate and a time-out.
 */
interface NginxSite {
  readonly upstreams: readonly Upstream[];
  readonly realIp?: string;
  readonly unlimitedNetworks?: string;
  /** Requests per second of a buyer address. A busy machine may not exceed the shipped rate, the default. */
  readonly perSecond?: number;
  /** Sends each lane of buyers to one API, as the comment in site/upstreams.conf describes. */
  readonly byLane?: boolean;
  /** Wait of a purchase for an API. A busy machine may exceed the shipped time, the default. */
  readonly purchaseWaitMs?: number;
}

/** A line of the access log. */
export interface LoggedAnswer {
  readonly path: string;
  readonly status: number;
}

/** Runs a real nginx with the configuration of deploy/nginx. */
export class Nginx {
  /** Addresses for buyers: without TLS, with TLS, and the redirect. */
  readonly url: string;
  readonly tlsUrl: string;
  readonly redirectUrl: string;
  readonly operatorsUrl: string;
  /** Certificate of all its servers, PEM. */
  readonly certificate: string;
  readonly #dir: string;
  readonly #spawn: () => ChildProcess;
  readonly #write: (upstreams: readonly Upstream[]) => void;
  #child: ChildProcess;

  private constructor(
    dir: string,
    ports: Ports,
    certificate: string,
    spawnNginx: () => ChildProcess,
    write: (upstreams: readonly Upstream[]) => void,
  ) {
    this.#dir = dir;
    this.#spawn = spawnNginx;
    this.#write = write;
    this.#child = spawnNginx();
    this.certificate = certificate;
    this.url = `http://127.0.0.1:${ports.plain}`;
    this.tlsUrl = `https://127.0.0.1:${ports.tls}`;
    this.redirectUrl = `http://127.0.0.1:${ports.redirect}`;
    this.operatorsUrl = `http://127.0.0.1:${ports.operators}`;
  }

  /** @throws with its output if nginx does not start */
  static async start(found: FoundNginx, site: NginxSite): Promise<Nginx> {
    const dir = mkdtempSync(join(tmpdir(), 'seckill-nginx-'));
    const conf = join(dir, 'conf');
    const pick = pickFreePort;
    const ports = { plain: pick(), tls: pick(), redirect: pick(), operators: pick() };
    cpSync(SHIPPED, conf, { recursive: true });
    writeSite(join(conf, 'site'), site, ports);
    const { perSecond, purchaseWaitMs } = site;
    if (perSecond !== undefined) {
      change(join(conf, 'seckill/http.conf'), /(?<=zone=buyers:\w+ rate=)\d+(?=r)/, perSecond);
    }
    if (purchaseWaitMs !== undefined) {
      change(join(conf, 'seckill/buyers.conf'), /(?<=\/purchases\$ \{[^}]+\}[^}]+read_timeout )\d+/, purchaseWaitMs);
    }
    if (site.byLane === true) hashLanes(join(conf, 'site/upstreams.conf'));
    const certificate = await makeCertificate(found, join(conf, 'tls'));
    const work = join(dir, 'work');
    mkdirSync(work);
    const user = process.getuid?.() === 0 ? ' user root;' : ''; // the folder of this test is private
    const args = ['-e', 'stderr', '-p', `${work}/`, '-c', join(conf, 'nginx.conf'), '-g', `daemon off;${user}`];
    const spawnNginx = (): ChildProcess => {
      const log = openSync(join(dir, 'nginx.log'), 'a');
      const child = spawn(found.path, args, { env: found.env, stdio: ['ignore', log, log] });
      closeSync(log);
      return child;
    };
    const write = (upstreams: readonly Upstream[]): void =>
      writeUpstreams(join(conf, 'site/upstreams.conf'), upstreams);
    const nginx = new Nginx(dir, ports, certificate, spawnNginx, write);
    try {
      await until('nginx is up', () => nginx.#isUp());
    } catch (error) {
      const said = nginx.log;
      await nginx.stop();
      throw new Error(`nginx does not start:\n${said}`, { cause: error });
    }
    return nginx;
  }

  async #isUp(): Promise<boolean> {
    return (await ask(`${this.url}/healthz`)).status === 200;
  }

  get accessLog(): LoggedAnswer[] {
    const lines = readFileSync(join(this.#dir, 'work/access.log'), 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as LoggedAnswer);
  }

  get log(): string {
    return readFileSync(join(this.#dir, 'nginx.log'), 'utf8');
  }

  /** Returns the pids of all workers, including workers that finish their last requests. */
  get workers(): number[] {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    return pids.map(Number).filter((pid) => parentOf(pid) === this.#child.pid);
  }

  /** Serves these APIs from now on. @returns once new workers run */
  serve(upstreams: readonly Upstream[]): Promise<void> {
    this.#write(upstreams);
    return this.reload();
  }

  /** Reloads the configuration. @returns once new workers run @throws if they do not start */
  async reload(): Promise<void> {
    const before = this.workers;
    this.#child.kill('SIGHUP');
    await until('new workers run', () => this.workers.some((pid) => !before.includes(pid)), { everyMs: 10 });
  }

  /** Kills all its processes with kill -9. */
  async kill(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    for (const pid of [this.#child.pid as number, ...this.workers]) process.kill(pid, 'SIGKILL');
    await ended;
  }

  /** Starts it again after `kill`, on the same ports. */
  async startAgain(): Promise<void> {
    this.#child = this.#spawn();
    await until('nginx is up again', () => this.#isUp());
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = new Promise((resolve) => this.#child.once('exit', resolve));
      this.#child.kill('SIGTERM');
      const cancel = afterGranted(STOP_MAX_MS, () => this.#child.kill('SIGKILL'));
      await ended;
      cancel();
    }
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

type Ports = Readonly<Record<'plain' | 'tls' | 'redirect' | 'operators', number>>;

function writeSite(folder: string, site: NginxSite, ports: Ports): void {
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
  const tls = 'ssl_certificate tls/test.crt;\nssl_certificate_key tls/test.key;\ninclude seckill/tls.conf;\n';
  write('listen-buyers.conf', `listen 127.0.0.1:${ports.plain};\nlisten 127.0.0.1:${ports.tls} ssl http2;\n${tls}`);
  write('listen-operators.conf', `listen 127.0.0.1:${ports.operators};\nallow 127.0.0.1;\ndeny all;\n`);
  const redirect = readFileSync(join(folder, 'redirect.conf'), 'utf8');
  write(
    'redirect.conf',
    redirect.replace(/^ *listen \[::\]:80;\n/m, '').replace('listen 80;', `listen 127.0.0.1:${ports.redirect};`),
  );
  writeUpstreams(join(folder, 'upstreams.conf'), site.upstreams);
  if (site.realIp !== undefined) write('real-ip.conf', site.realIp);
  if (site.unlimitedNetworks !== undefined) write('unlimited-networks.conf', site.unlimitedNetworks);
}

function writeUpstreams(file: string, upstreams: readonly Upstream[]): void {
  const portsOf = (name: keyof Upstream): number[] => upstreams.map((upstream) => upstream[name]);
  const buyers = withServers(readFileSync(file, 'utf8'), 'seckill_buyers', portsOf('port'));
  writeFileSync(file, withServers(buyers, 'seckill_operators', portsOf('operatorsPort')));
}

function hashLanes(file: string): void {
  const [head = '', rest = ''] = readFileSync(file, 'utf8').split('upstream seckill_buyers {\n');
  const [servers = '', ...others] = rest.split('}\n');
  const ours = servers.replaceAll(/max_fails=3 .*;/g, 'max_fails=0;').replaceAll(/.* backup;\n/g, '');
  writeFileSync(file, `${head}upstream seckill_buyers {\n  hash $lane;\n${[ours, ...others].join('}\n')}`);
}

/** @throws Error if the file has no such number */
function change(file: string, number: RegExp, to: number): void {
  const conf = readFileSync(file, 'utf8');
  const changed = conf.replace(number, String(to));
  if (changed === conf) throw new Error(`${file} has no ${number}`);
  writeFileSync(file, changed);
}

/** Returns the group with other servers, which keep the options of servers and backups. */
function withServers(conf: string, group: string, ports: readonly number[]): string {
  const block = new RegExp(`(upstream ${group} \\{\\n(?: +zone .*\\n)?)((?: +server .*\\n)+)`);
  const [, , servers = ''] = block.exec(conf) ?? [];
  const options = new Set([...servers.matchAll(/server \S+ (.*);/g)].map(([, text]) => text));
  if (options.size === 0) throw new Error(`site/upstreams.conf has no servers for ${group}`);
  const lines = [...options].flatMap((text) => ports.map((port) => `  server 127.0.0.1:${port} ${text};\n`));
  return conf.replace(block, (_whole, head: string) => `${head}${lines.join('')}`);
}

async function makeCertificate({ openssl, env }: FoundNginx, folder: string): Promise<string> {
  mkdirSync(folder);
  const [key, certificate] = [join(folder, 'test.key'), join(folder, 'test.crt')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2'];
  const made = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    key,
    '-out',
    certificate,
  ];
  await run(openssl, ['req', '-x509', ...made, ...subject], { env });
  return readFileSync(certificate, 'utf8');
}
