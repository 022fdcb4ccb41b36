import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_ARTIFACTS_DIR } from '../../deploy/local/stack/paths.js';
import { pickFreePort } from '../../deploy/local/stack/ports.js';
import { toolsOnce } from '../../deploy/local/stack/tools.js';
import { versionsIn } from '../../deploy/local/stack/versions.js';
import { isBrokerActive, masterBrokers } from '../../src/rocketmq/admin/broker-state.js';
import { until } from '../chaos/harness/wait.js';

/** A RocketMQ process. */
interface Server {
  readonly child: ChildProcess;
  readonly port: number;
}

/** A private name server and brokers without a proxy and without access control, for tests of several brokers. */
export class PrivateCluster {
  readonly #dir: string;
  readonly #servers = new Map<string, Server>();

  private constructor(dir: string) {
    this.#dir = dir;
  }

  /** @param names of the brokers */
  static async start(names: readonly string[]): Promise<PrivateCluster> {
    const cluster = new PrivateCluster(mkdtempSync(join(tmpdir(), 'seckill-brokers-')));
    try {
      await cluster.#start(names);
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  get namesrvAddr(): string {
    return `127.0.0.1:${this.#server('namesrv').port}`;
  }

  /** Sends kill -9, SIGSTOP or SIGCONT to a process of this cluster. */
  async signal(name: string, signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    const { child } = this.#server(name);
    child.kill(signal);
    if (signal === 'SIGKILL') await until(`${name} has ended`, () => child.signalCode !== null);
  }

  async close(): Promise<void> {
    for (const { child } of this.#servers.values()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL'); // its data is not needed again, and a stopped process reacts to no other signal
      await ended;
    }
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #server(name: string): Server {
    const server = this.#servers.get(name);
    if (server === undefined) throw new Error(`there is no server ${name}`);
    return server;
  }

  async #start(names: readonly string[]): Promise<void> {
    const namesrvPort = pickFreePort();
    const kept = { kvConfigPath: join(this.#dir, 'kv.json'), configStorePath: join(this.#dir, 'ns.properties') };
    const namesrv = { listenPort: namesrvPort, bindAddress: '127.0.0.1', ...kept };
    await this.#run('namesrv', namesrvPort, 'org.apache.rocketmq.namesrv.NamesrvStartup', namesrv);
    for (const name of names) {
      const store = join(this.#dir, name);
      const broker = pickFreePort([-2, 1]);
      await this.#run(name, broker, 'org.apache.rocketmq.broker.BrokerStartup', {
        brokerClusterName: 'production',
        brokerName: name,
        brokerId: 0,
        brokerIP1: '127.0.0.1',
        bindAddress: '127.0.0.1',
        listenPort: broker,
        namesrvAddr: `127.0.0.1:${namesrvPort}`,
        storePathRootDir: store,
        storePathCommitLog: join(store, 'commitlog'),
        mappedFileSizeCommitLog: 16_777_216,
        mappedFileSizeTimerLog: 16_777_216,
        maxHashSlotNum: 10_000,
        maxIndexNum: 40_000,
        registerNameServerPeriod: 10_000,
        reviveQueueNum: 2,
      });
    }
    await until('the brokers serve', () => this.#areReady(names.length), { everyMs: 500 });
  }

  async #areReady(count: number): Promise<boolean> {
    const port = this.#server('namesrv').port;
    const brokers = await masterBrokers({ host: '127.0.0.1', port }, null);
    const active = await Promise.all(brokers.map(isBrokerActive));
    return active.filter(Boolean).length === count;
  }

  async #run(name: string, port: number, mainClass: string, settings: Readonly<Record<string, string | number>>) {
    const { java, artifacts } = await tools();
    const home = join(this.#dir, `${name}-home`);
    mkdirSync(home, { recursive: true });
    const conf = join(this.#dir, `${name}.conf`);
    writeFileSync(
      conf,
      Object.entries(settings)
        .map(([key, value]) => `${key}=${value}\n`)
        .join(''),
    );
    const log = openSync(join(this.#dir, `${name}.log`), 'a');
    const flags = [
      '-Xms256m',
      '-Xmx256m',
      '-XX:MaxDirectMemorySize=256m',
      '-XX:TieredStopAtLevel=1',
      '-XX:+UseSerialGC',
    ];
    const where = [
      `-Duser.home=${home}`,
      `-Drocketmq.home.dir=${home}`,
      `-Djava.io.tmpdir=${home}`,
      '-Dtls.server.mode=disabled',
    ];
    const logback = `-Drmq.logback.configurationFile=rmq.${name === 'namesrv' ? 'namesrv' : 'broker'}.logback.xml`;
    const args = [...flags, ...where, logback, '-cp', `${artifacts.rocketmqLib}/*`, mainClass, '-c', conf];
    const child = spawn(java, args, { stdio: ['ignore', log, log] });
    closeSync(log);
    this.#servers.set(name, { child, port });
  }
}

const tools = toolsOnce(DEFAULT_ARTIFACTS_DIR, process.env, versionsIn(process.env), () => undefined);
