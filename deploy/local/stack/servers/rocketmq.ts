import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_CLUSTER, isBrokerActive, masterBrokers } from '../../../../src/rocketmq/admin/broker-state.js';
import {
  askRemoting,
  exchange,
  NO_PERMISSION,
  REQUEST,
  type RemotingAddress,
} from '../../../../src/rocketmq/admin/remoting.js';
import { escapeProperty, writeConf } from '../files.js';
import type { StackPaths } from '../paths.js';
import type { StackPorts } from '../ports.js';
import { brokerCredentials, ensureSecrets, readSecrets } from '../settings.js';
import { probePort, type ProbeResult, reasonOf } from '../probes.js';
import type { Instance, ServerSpec } from './server-spec.js';

export function namesrvSpec({ paths, ports }: Instance): ServerSpec {
  return {
    name: 'namesrv',
    label: 'RocketMQ name server',
    portNames: ['namesrv'],
    startTimeoutMs: 120_000,
    stopTimeoutMs: 15_000,
    prepare: async ({ java, artifacts }) => {
      const confFile = paths.conf('namesrv.conf');
      mkdirSync(paths.data('namesrv'), { recursive: true });
      writeConf('namesrv.conf', confFile, {
        namesrvPort: ports.namesrv,
        dataDir: escapeProperty(paths.data('namesrv')),
      });
      const args = javaArgs(paths, artifacts.rocketmqLib, {
        name: 'namesrv',
        // the simple compiler and collector: half the work at the start, and it has little to do later
        flags: ['-Xms256m', '-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'],
        logback: 'rmq.namesrv.logback.xml',
        mainClass: 'org.apache.rocketmq.namesrv.NamesrvStartup',
      });
      return { file: java, args: [...args, '-c', confFile] };
    },
    probe: async (): Promise<ProbeResult> => {
      try {
        await askRemoting({ host: '127.0.0.1', port: ports.namesrv }, REQUEST.clusterInfo);
        return null;
      } catch (error) {
        return reasonOf(error);
      }
    },
  };
}

/** Said by the probe and understood by `hasten`. */
const UNREGISTERED = 'the name server does not know the broker yet';
/** Registering takes a moment; asking for it more often would make it slower. */
const HASTEN_EVERY_MS = 1_000;

export function proxySpec({ paths, ports, durability }: Instance): ServerSpec {
  let hastenedAtMs = -Infinity;
  const brokerOf = (): RemotingAddress => {
    const secrets = readSecrets(paths.secretsFile);
    return { host: '127.0.0.1', port: ports.broker, credentials: secrets === null ? null : brokerCredentials(secrets) };
  };
  return {
    name: 'proxy',
    label: 'RocketMQ proxy and broker',
    portNames: ['broker', 'grpc', 'remoting', 'metrics'],
    startTimeoutMs: 240_000, // 8 s on a free machine; 79 s were seen with ten programs waiting for each core
    stopTimeoutMs: 30_000, // it takes about 12 s
    prepare: async ({ java, artifacts }) => {
      const [brokerConf, proxyConf] = [paths.conf('broker.conf'), paths.conf('rmq-proxy.json')];
      mkdirSync(paths.data('rocketmq'), { recursive: true });
      const { accessKey, accessSecret } = brokerCredentials(ensureSecrets(paths.secretsFile));
      writeConf('broker.conf', brokerConf, {
        accessKey,
        accessSecret,
        brokerPort: ports.broker,
        namesrvPort: ports.namesrv,
        metricsPort: ports.metrics,
        storeDir: escapeProperty(paths.data('rocketmq')),
        flushDiskType: durability === 'host' ? 'SYNC_FLUSH' : 'ASYNC_FLUSH',
      });
      writeConf('tools.yml', paths.conf('tools.yml'), { accessKey, accessSecret });
      writeConf('rmq-proxy.json.tmpl', proxyConf, {
        accessKey,
        accessSecret,
        namesrvPort: ports.namesrv,
        grpcPort: ports.grpc,
        remotingPort: ports.remoting,
      });
      const args = javaArgs(paths, artifacts.rocketmqLib, {
        name: 'proxy',
        flags: ['-Xms1g', '-Xmx1g', '-XX:MaxDirectMemorySize=1g', '-XX:+UseG1GC'],
        logback: 'rmq.proxy.logback.xml',
        mainClass: 'org.apache.rocketmq.proxy.ProxyStartup',
      });
      const where = ['-n', `127.0.0.1:${ports.namesrv}`, '-pm', 'local', '-bc', brokerConf, '-pc', proxyConf];
      return { file: java, args: [...args, ...where] };
    },
    probe: () => probeProxy(brokerOf(), ports),
    hasten: async (reason) => {
      if (reason !== UNREGISTERED || performance.now() - hastenedAtMs < HASTEN_EVERY_MS) return;
      hastenedAtMs = performance.now();
      await registerNow(brokerOf());
    },
  };
}

/**
 * On a busy machine every other broker starts before its client has found the name server, and then registers only
 * 10 s later. Setting its permission, to what it is, makes it register at once.
 */
async function registerNow(address: RemotingAddress): Promise<void> {
  const readAndWrite = 'brokerPermission=6\n';
  try {
    await askRemoting(address, REQUEST.updateBrokerConfig, readAndWrite);
  } catch {
    // it will register by itself
  }
}

/** Ready is three things: the broker has loaded its store, the name server knows it, gRPC is open. */
async function probeProxy(address: RemotingAddress, ports: StackPorts): Promise<ProbeResult> {
  try {
    if (!(await isBrokerActive(address))) return 'the broker is not activated yet';
    const known = await masterBrokers({ host: '127.0.0.1', port: ports.namesrv }, DEFAULT_CLUSTER);
    if (!known.some(({ port }) => port === ports.broker)) return UNREGISTERED;
  } catch (error) {
    return reasonOf(error);
  }
  return probePort(ports.grpc);
}

/** Whether the running broker refuses who has no key. One that an older version of this stack started refuses nobody. */
export async function refusesStrangers({ broker }: Pick<StackPorts, 'broker'>): Promise<boolean> {
  try {
    const { code } = await exchange({ host: '127.0.0.1', port: broker }, REQUEST.brokerRuntimeInfo);
    return code === NO_PERMISSION;
  } catch {
    return false; // it does not answer: nothing is known, and nothing is promised
  }
}

interface JavaProgram {
  /** Folder name for its logs and temporary files. */
  readonly name: string;
  /** Heap and collector flags. */
  readonly flags: readonly string[];
  /** A resource inside the jars, not a file. */
  readonly logback: string;
  readonly mainClass: string;
}

/** How every RocketMQ program is started: its log folder hangs on user.home, whatever else is configured. */
function javaArgs(paths: StackPaths, rocketmqLib: string, program: JavaProgram): string[] {
  return [
    ...program.flags,
    `-Duser.home=${paths.log(join('rocketmq', program.name))}`,
    `-Drocketmq.home.dir=${paths.dir}`,
    `-Drmq.logback.configurationFile=${program.logback}`,
    // no port here speaks TLS, and each would make a key of its own, seconds of a core
    '-Dtls.server.mode=disabled',
    // after a kill -9, a 12 MB library is left in it
    `-Djava.io.tmpdir=${paths.tmp(program.name)}`,
    '-cp',
    `${rocketmqLib}/*`,
    program.mainClass,
  ];
}
