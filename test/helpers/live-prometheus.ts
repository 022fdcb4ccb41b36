import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, openSync, closeSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterGranted } from '../../deploy/local/stack/granted-time.js';
import { pickFreePort } from '../../deploy/local/stack/ports.js';
import { until } from '../chaos/harness/wait.js';
import { fetchTool } from './prometheus-tools.js';

const RULES = new URL('../../deploy/prometheus/', import.meta.url).pathname;
const RULE_FILES = ['alerts.yml', 'objectives.yml'];
const STOP_MAX_MS = 20_000;

/** Same as in deploy/prometheus/prometheus.yml. */
export const SCRAPE_EVERY_S = 5;

/** A series of a result: its labels, and its values by time. NaN means no value. */
export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly values: readonly number[];
}

/** A program that Prometheus scrapes. */
export interface Target {
  readonly program: 'api' | 'worker' | 'keeper' | 'proxy';
  /** `host:port`. */
  readonly address: string;
}

const staticOf = (all: readonly Target[], isWanted: (program: Target['program']) => boolean): object[] =>
  all
    .filter(({ program }) => isWanted(program))
    .map(({ program, address }) => ({ labels: { program }, targets: [address] }));

export interface FiringAlert {
  readonly name: string;
  readonly state: 'pending' | 'firing';
  /** The labels without name and severity, which distinguish two alerts of a rule. */
  readonly about: string;
}

/** Runs a real Prometheus that scrapes programs and evaluates the rules of deploy/prometheus. */
export class LivePrometheus {
  readonly #url: string;
  readonly #child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.#url = url;
    this.#child = child;
  }

  /**
   * @param dir for its configuration, data and log
   * @param targets each program, and the proxy in front of the apis if there is one
   * @returns Prometheus once it is ready, or the reason why there is none
   */
  static async start(dir: string, targets: readonly Target[]): Promise<LivePrometheus | { readonly missing: string }> {
    const tool = await fetchTool('prometheus');
    if ('missing' in tool) return tool;
    mkdirSync(dir, { recursive: true });
    const file = join(dir, 'prometheus.yml');
    const every = `${SCRAPE_EVERY_S}s`;
    const config = {
      global: { scrape_interval: every, evaluation_interval: every },
      rule_files: RULE_FILES.map((name) => join(RULES, name)),
      // as in deploy/prometheus/prometheus.yml
      scrape_configs: [
        {
          job_name: 'seckill',
          honor_labels: true,
          static_configs: staticOf(targets, (program) => program !== 'proxy'),
        },
        {
          job_name: 'seckill-proxy',
          metrics_path: '/readyz',
          static_configs: staticOf(targets, (program) => program === 'proxy'),
        },
      ],
    };
    writeFileSync(file, JSON.stringify(config)); // YAML accepts JSON
    const address = `127.0.0.1:${pickFreePort()}`;
    const log = openSync(join(dir, 'prometheus.log'), 'a');
    const args = [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(dir, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=warn',
    ];
    const child = spawn(tool.path, args, { stdio: ['ignore', log, log] });
    closeSync(log);
    const prometheus = new LivePrometheus(`http://${address}`, child);
    try {
      await until('Prometheus is ready', () => prometheus.#isReady(), { everyMs: 200 });
    } catch (error) {
      await prometheus.stop();
      throw error;
    }
    return prometheus;
  }

  async #isReady(): Promise<boolean> {
    if (this.#child.exitCode !== null) throw new Error(`Prometheus has ended with ${this.#child.exitCode}`);
    const answer = await fetch(`${this.#url}/-/ready`).catch(() => null);
    return answer?.ok ?? false;
  }

  /**
   * Returns the values of an expression from a time until now. @param fromMs Unix ms @throws Error for an invalid
   * expression
   */
  async range(expr: string, fromMs: number): Promise<Series[]> {
    const times = { start: String(fromMs / 1000), end: String(Date.now() / 1000), step: String(SCRAPE_EVERY_S) };
    const data = await this.#get('query_range', { query: expr, ...times });
    const { result } = data as { result: { metric: Record<string, string>; values: [number, string][] }[] };
    return result.map(({ metric, values }) => ({ labels: metric, values: values.map(([, value]) => Number(value)) }));
  }

  async alerts(): Promise<FiringAlert[]> {
    const { alerts } = (await this.#get('alerts', {})) as {
      alerts: { labels: Record<string, string>; state: FiringAlert['state'] }[];
    };
    const real = alerts.filter(({ labels }) => labels.severity !== 'none'); // the watchdog always fires
    return real.map(({ state, labels: { alertname = '', severity: _, ...about } }) => ({
      name: alertname,
      state,
      about: Object.entries(about)
        .map(([label, value]) => `${label}=${value}`)
        .join(' '),
    }));
  }

  async #get(path: string, query: Readonly<Record<string, string>>): Promise<unknown> {
    const answer = await fetch(`${this.#url}/api/v1/${path}?${new URLSearchParams(query).toString()}`);
    const { status, data, error } = (await answer.json()) as Record<string, unknown>;
    if (status !== 'success') throw new Error(`Prometheus: ${String(error)}`);
    return data;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGTERM');
    const cancel = afterGranted(STOP_MAX_MS, () => this.#child.kill('SIGKILL'));
    await ended;
    cancel();
  }
}
