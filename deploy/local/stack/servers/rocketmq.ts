import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { isBrokerActive, masterBrokers, parseAddress } from '../../../../src/rocketmq/admin/broker-state.js';
import {
  askRemoting,
  exchange,
  NO_PERMISSION,
  REQUEST,
  type RemotingAddress,
} from '../../../../src/rocketmq/admin/remoting.js';
import type { BrokerAccess } from '../../../../src/rocketmq/credentials.js';
import type { CertificateFiles } from '../certificates.js';
import { escapeProperty, writeConf } from '../files.js';
import type { StackPaths } from '../paths.js';
import type { StackPorts } from '../ports.js';
import { brokerAccessIn, brokerCredentials, ensureSecrets, readSecrets, stackEnv } from '../settings.js';
import { probePort, type ProbeResult, reasonOf } from '../probes.js';
import type { Instance, ServerSpec } from './server-spec.js';

/** Returns the user and the TLS settings for the servers of an instance. There is no user before its first start. */
function accessOf({ paths, ports, certificates = null }: Instance): BrokerAccess {
  const secrets = readSecrets(paths.secretsFile);
  return secrets === null ? { credentials: null } : brokerAccessIn(stackEnv(ports, secrets, certificates));
}

export function namesrvSpec(instance: Instance): ServerSpec {
  const { paths, ports, certificates = null } = instance;
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
        // the simple compiler and collector halve the work at the start, and little work follows
        flags: ['-Xms256m', '-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'],
        logback: 'rmq.namesrv.logback.xml',
        mainClass: 'org.apache.rocketmq.namesrv.NamesrvStartup',
        certificates,
      });
      return { file: java, args: [...args, '-c', confFile] };
    },
    probe: async (): Promise<ProbeResult> => {
      try {
        await askRemoting(parseAddress(`127.0.0.1:${ports.namesrv}`, accessOf(instance)), REQUEST.clusterInfo);
        return null;
      } catch (error) {
        return reasonOf(error);
      }
    },
  };
}

/** Lines that shorten the waits of the broker and the proxy. The last line of a name wins. */
const TEST_TIMING = {
  broker: [
    'transactionTimeOut=3000',
    'transactionCheckInterval=1000',
    'transactionOpBatchInterval=300',
    'transactionCheckMax=3600', // an hour, as in production
  ].join('\n'),
  proxy: '"minInvisibleTimeMillsForRecv": 1000,',
};
const PRODUCTION_TIMING = { broker: '', proxy: '' };

/** Returned by the probe and handled by `hasten`. */
const UNREGISTERED = 'the name server does not know the broker yet';
/** Registering takes a moment, and more frequent requests would slow it down. */
const HASTEN_EVERY_MS = 1_000;

export function proxySpec(instance: Instance): ServerSpec {
  const { paths, ports, durability, timing = 'production', certificates = null } = instance;
  const times = timing === 'test' ? TEST_TIMING : PRODUCTION_TIMING;
  let hastenedAtMs = -Infinity;
  const brokerOf = (): RemotingAddress => parseAddress(`127.0.0.1:${ports.broker}`, accessOf(instance));
  return {
    name: 'proxy',
    label: 'RocketMQ proxy and broker',
    portNames: ['broker', 'grpc', 'remoting', 'metrics'],
    startTimeoutMs: 240_000, // 8 s on a free machine, up to 79 s with ten programs per core
    stopTimeoutMs: 30_000, // takes about 12 s
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
        timing: times.broker,
      });
      writeConf('tools.yml', paths.conf('tools.yml'), { accessKey, accessSecret });
      writeConf('rmq-proxy.json.tmpl', proxyConf, {
        accessKey,
        accessSecret,
        namesrvPort: ports.namesrv,
        grpcPort: ports.grpc,
        remotingPort: ports.remoting,
        timing: times.proxy,
        tls: proxyTls(certificates),
      });
      const args = javaArgs(paths, artifacts.rocketmqLib, {
        name: 'proxy',
        flags: ['-Xms1g', '-Xmx1g', '-XX:MaxDirectMemorySize=1g', '-XX:+UseG1GC'],
        logback: 'rmq.proxy.logback.xml',
        mainClass: 'org.apache.rocketmq.proxy.ProxyStartup',
        certificates,
      });
      const where = ['-n', `127.0.0.1:${ports.namesrv}`, '-pm', 'local', '-bc', brokerConf, '-pc', proxyConf];
      return { file: java, args: [...args, ...where] };
    },
    probe: () => probeProxy(brokerOf(), parseAddress(`127.0.0.1:${ports.namesrv}`, accessOf(instance)), ports),
    hasten: async (reason) => {
      if (reason !== UNREGISTERED || performance.now() - hastenedAtMs < HASTEN_EVERY_MS) return;
      hastenedAtMs = performance.now();
      await registerNow(brokerOf());
    },
  };
}

/**
 * On a busy machine, every second broker starts before its client has found the name server and registers only 10 s
 * later. Setting its permission to the current value makes it register at once.
 */
async function registerNow(address: RemotingAddress): Promise<void> {
  const readAndWrite = 'brokerPermission=6\n';
  try {
    await askRemoting(address, REQUEST.updateBrokerConfig, readAndWrite);
  } catch {
    // the broker will register by itself
  }
}

/** Checks that the broker has loaded its store, the name server knows the broker, and gRPC is open. */
async function probeProxy(address: RemotingAddress, namesrv: RemotingAddress, ports: StackPorts): Promise<ProbeResult> {
  try {
    if (!(await isBrokerActive(address))) return 'the broker is not activated yet';
    const known = await masterBrokers(namesrv, null);
    if (!known.some(({ port }) => port === ports.broker)) return UNREGISTERED;
  } catch (error) {
    return reasonOf(error);
  }
  return probePort(ports.grpc);
}

/**
 * Whether the running broker refuses clients without a key. A broker started by an older version of this stack refuses
 * no client.
 */
export async function refusesStrangers(
  { broker }: Pick<StackPorts, 'broker'>,
  { adminTls: tls = null }: Partial<BrokerAccess> = {},
): Promise<boolean> {
  try {
    const { code } = await exchange({ host: '127.0.0.1', port: broker, tls }, REQUEST.brokerRuntimeInfo);
    return code === NO_PERMISSION;
  } catch {
    return false; // the broker does not answer, so nothing is known
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
  readonly certificates: CertificateFiles | null;
}

/**
 * Returns the arguments of every RocketMQ program. Its log folder depends on user.home, whatever else is configured.
 */
function javaArgs(paths: StackPaths, rocketmqLib: string, program: JavaProgram): string[] {
  return [
    ...program.flags,
    `-Duser.home=${paths.log(join('rocketmq', program.name))}`,
    `-Drocketmq.home.dir=${paths.dir}`,
    `-Drmq.logback.configurationFile=${program.logback}`,
    ...tlsFlags(program.certificates),
    // a kill -9 leaves a 12 MB library in it
    `-Djava.io.tmpdir=${paths.tmp(program.name)}`,
    '-cp',
    `${rocketmqLib}/*`,
    program.mainClass,
  ];
}

/**
 * Returns the flags of a server that only accepts TLS with a client certificate, and of a client with a certificate,
 * because servers call each other, too.
 */
export function tlsFlags(certificates: CertificateFiles | null): string[] {
  // without TLS, because each port would generate its own key, which takes seconds of CPU
  if (certificates === null) return ['-Dtls.server.mode=disabled'];
  const { ca, server, serverKey, client, clientKey } = certificates;
  return [
    '-Dtls.server.mode=enforcing',
    '-Dtls.test.mode.enable=false',
    `-Dtls.server.certPath=${server}`,
    `-Dtls.server.keyPath=${serverKey}`,
    '-Dtls.server.need.client.auth=require',
    '-Dtls.server.authClient=true',
    `-Dtls.server.trustCertPath=${ca}`,
    '-Dtls.enable=true',
    '-Dtls.client.authServer=true',
    `-Dtls.client.trustCertPath=${ca}`,
    `-Dtls.client.certPath=${client}`,
    `-Dtls.client.keyPath=${clientKey}`,
    '-Dtls.config.file=', // ignores files on this machine that change these settings
  ];
}

/** Returns lines for the proxy configuration. Its gRPC port has its own settings and requires no certificate. */
function proxyTls(certificates: CertificateFiles | null): string {
  if (certificates === null) return '';
  const { server: tlsCertPath, serverKey: tlsKeyPath } = certificates;
  const lines = JSON.stringify({ tlsTestModeEnable: false, tlsCertPath, tlsKeyPath });
  return `${lines.slice(1, -1)},`;
}
