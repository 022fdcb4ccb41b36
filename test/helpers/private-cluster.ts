import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_ARTIFACTS_DIR } from '../../deploy/local/stack/paths.js';
import { pickFreePort } from '../../deploy/local/stack/ports.js';
import { probePort } from '../../deploy/local/stack/probes.js';
import { toolsOnce } from '../../deploy/local/stack/tools.js';
import { versionsIn } from '../../deploy/local/stack/versions.js';
import { isBrokerActive, masterBrokers } from '../../src/rocketmq/admin/broker-state.js';
import { until } from '../chaos/harness/wait.js';

const CLUSTER = 'production';

/** A RocketMQ process. */
interface Server {
  readonly child: ChildProcess;
  readonly port: number;
  readonly startAgain: () => Promise<void>;
}

type Settings = Readonly<Record<string, string | number | boolean>>;

/** A private name server with several brokers, without access control, and with proxies on request. */
export class PrivateCluster {
  readonly #dir: string;
  readonly #settings: Settings;
  readonly #servers = new Map<string, Server>();
  #brokers = 0;

  private constructor(dir: string, settings: Settings) {
    this.#dir = dir;
    this.#settings = settings;
  }

  /**
   * @param names of the brokers
   * @param settings of the brokers, in addition to addresses and sizes
   */
  static async start(names: readonly string[], settings: Settings = {}): Promise<PrivateCluster> {
    const cluster = new PrivateCluster(mkdtempSync(join(tmpdir(), 'seckill-brokers-')), settings);
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

  /** Starts a killed process again, with its port and its data. */
  async restart(name: string): Promise<void> {
    await this.#server(name).startAgain();
    await this.#untilListens(name);
    await this.#untilReady();
  }

  /** Adds a broker to the running cluster. */
  async addBroker(name: string): Promise<void> {
    await this.#startBroker(name);
    await this.#untilReady();
  }

  /**
   * Starts proxies in cluster mode, each of which serves every broker.
   * @param settings in addition to the addresses
   * @returns their addresses, `host:port` by name
   */
  async startProxies(names: readonly string[], settings: Settings = {}): Promise<Map<string, string>> {
    const addresses = new Map<string, string>();
    for (const name of names) {
      const port = pickFreePort();
      await this.#run(name, port, 'org.apache.rocketmq.proxy.ProxyStartup', {
        rocketMQClusterName: CLUSTER,
        namesrvAddr: this.namesrvAddr,
        grpcServerPort: port,
        remotingListenPort: pickFreePort(),
        useEndpointPortFromRequest: true,
        ...settings,
      });
      addresses.set(name, `127.0.0.1:${port}`);
    }
    for (const name of names) await this.#untilListens(name);
    return addresses;
  }

  #untilListens(name: string): Promise<void> {
    const { port } = this.#server(name);
    return until(`${name} listens`, async () => (await probePort(port)) === null, { everyMs: 500 });
  }

  async close(): Promise<void> {
    for (const { child } of this.#servers.values()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL'); // a stopped process reacts to no other signal
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
    for (const name of names) await this.#startBroker(name);
    await this.#untilReady();
  }

  async #startBroker(name: string): Promise<void> {
    const store = join(this.#dir, name);
    const broker = pickFreePort([-2, 1]);
    this.#brokers += 1;
    await this.#run(name, broker, 'org.apache.rocketmq.broker.BrokerStartup', {
      brokerClusterName: CLUSTER,
      brokerName: name,
      brokerId: 0,
      brokerIP1: '127.0.0.1',
      bindAddress: '127.0.0.1',
      listenPort: broker,
      namesrvAddr: this.namesrvAddr,
      storePathRootDir: store,
      storePathCommitLog: join(store, 'commitlog'),
      mappedFileSizeCommitLog: 16_777_216,
      mappedFileSizeTimerLog: 16_777_216,
      maxHashSlotNum: 10_000,
      maxIndexNum: 40_000,
      registerNameServerPeriod: 10_000,
      reviveQueueNum: 2,
      ...this.#settings,
    });
  }

  #untilReady(): Promise<void> {
    return until('the brokers serve', () => this.#areReady(), { everyMs: 500 });
  }

  async #areReady(): Promise<boolean> {
    const port = this.#server('namesrv').port;
    const brokers = await masterBrokers({ host: '127.0.0.1', port }, null);
    const active = await Promise.all(brokers.map(isBrokerActive));
    return active.filter(Boolean).length === this.#brokers;
  }

  async #run(name: string, port: number, mainClass: string, settings: Settings): Promise<void> {
    const isProxy = mainClass.endsWith('ProxyStartup');
    const { java, artifacts } = await tools();
    const home = join(this.#dir, `${name}-home`);
    mkdirSync(home, { recursive: true });
    const conf = join(this.#dir, `${name}.conf`);
    const lines = Object.entries(settings).map(([key, value]) => `${key}=${value}\n`);
    writeFileSync(conf, isProxy ? JSON.stringify(settings) : lines.join(''));
    const log = openSync(join(this.#dir, `${name}.log`), 'a');
    const flags = [
      '-Xms256m',
      '-Xmx256m',
      '-XX:MaxDirectMemorySize=1g', // each thread that stores messages takes 4 MB
      '-XX:TieredStopAtLevel=1',
      '-XX:+UseSerialGC',
    ];
    const where = [
      `-Duser.home=${home}`,
      `-Drocketmq.home.dir=${home}`,
      `-Djava.io.tmpdir=${home}`,
      '-Dtls.server.mode=disabled',
    ];
    const logback = `-Drmq.logback.configurationFile=rmq.${isProxy ? 'proxy' : name === 'namesrv' ? 'namesrv' : 'broker'}.logback.xml`;
    const own = isProxy ? ['-pm', 'cluster', '-pc', conf] : ['-c', conf];
    const args = [...flags, ...where, logback, '-cp', `${artifacts.rocketmqLib}/*`, mainClass, ...own];
    const child = spawn(java, args, { stdio: ['ignore', log, log] });
    closeSync(log);
    const startAgain = (): Promise<void> => this.#run(name, port, mainClass, settings);
    this.#servers.set(name, { child, port, startAgain });
  }
}

const tools = toolsOnce(DEFAULT_ARTIFACTS_DIR, process.env, versionsIn(process.env), () => undefined);
