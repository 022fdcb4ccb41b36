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

/** As whom and how we ask the servers of an instance; nobody before its first start. */
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
        // the simple compiler and collector: half the work at the start, and it has little to do later
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

/** Lines that shorten the waits of the broker and the proxy. The last line of a name counts. */
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

/** Said by the probe and understood by `hasten`. */
const UNREGISTERED = 'the name server does not know the broker yet';
/** Registering takes a moment; asking for it more often would make it slower. */
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

/** Whether the running broker refuses who has no key. One that an older version of this stack started refuses nobody. */
export async function refusesStrangers(
  { broker }: Pick<StackPorts, 'broker'>,
  { adminTls: tls = null }: Partial<BrokerAccess> = {},
): Promise<boolean> {
  try {
    const { code } = await exchange({ host: '127.0.0.1', port: broker, tls }, REQUEST.brokerRuntimeInfo);
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
  readonly certificates: CertificateFiles | null;
}

/** How every RocketMQ program is started: its log folder hangs on user.home, whatever else is configured. */
function javaArgs(paths: StackPaths, rocketmqLib: string, program: JavaProgram): string[] {
  return [
    ...program.flags,
    `-Duser.home=${paths.log(join('rocketmq', program.name))}`,
    `-Drocketmq.home.dir=${paths.dir}`,
    `-Drmq.logback.configurationFile=${program.logback}`,
    ...tlsFlags(program.certificates),
    // after a kill -9, a 12 MB library is left in it
    `-Djava.io.tmpdir=${paths.tmp(program.name)}`,
    '-cp',
    `${rocketmqLib}/*`,
    program.mainClass,
  ];
}

/** Of a server that takes TLS only, from who has a certificate, and of a client with one: servers call each other, too. */
export function tlsFlags(certificates: CertificateFiles | null): string[] {
  // without TLS, since each port would make a key of its own, seconds of a core
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
    '-Dtls.config.file=', // none on this machine changes these
  ];
}

/** Lines of the configuration of the proxy, whose gRPC port has settings of its own and asks for no certificate. */
function proxyTls(certificates: CertificateFiles | null): string {
  if (certificates === null) return '';
  const { server: tlsCertPath, serverKey: tlsKeyPath } = certificates;
  const lines = JSON.stringify({ tlsTestModeEnable: false, tlsCertPath, tlsKeyPath });
  return `${lines.slice(1, -1)},`;
}
