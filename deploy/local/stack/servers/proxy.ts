import { mkdirSync } from 'node:fs';
import { DEFAULT_CLUSTER, isBrokerActive, masterBrokers } from '../../../../src/rocketmq/admin/broker-state.js';
import type { StackPorts } from '../ports.js';
import { askRemoting, REQUEST } from '../../../../src/rocketmq/admin/remoting.js';
import { probePort, reasonOf, type ProbeResult } from '../probes.js';
import { escapeProperty, writeConf } from '../template.js';
import { javaArgs } from './java-args.js';
import type { ServerSite, ServerSpec } from './server-spec.js';

/** Said by the probe and understood by `hasten`. */
const UNREGISTERED = 'the name server does not know the broker yet';
/** Registering takes a moment; asking for it more often would make it slower. */
const HASTEN_EVERY_MS = 1_000;

export function proxySpec({ paths, ports, durability }: ServerSite): ServerSpec {
  let hastenedAtMs = -Infinity;
  return {
    name: 'proxy',
    label: 'RocketMQ proxy and broker',
    portNames: ['broker', 'grpc', 'remoting', 'metrics'],
    startTimeoutMs: 240_000, // 8 s on a free machine; 79 s were seen with ten programs waiting for each core
    stopTimeoutMs: 30_000, // it takes about 12 s
    prepare: async ({ java, artifacts }) => {
      const [brokerConf, proxyConf] = [paths.conf('broker.conf'), paths.conf('rmq-proxy.json')];
      mkdirSync(paths.data('rocketmq'), { recursive: true });
      writeConf('broker.conf', brokerConf, {
        brokerPort: ports.broker,
        namesrvPort: ports.namesrv,
        metricsPort: ports.metrics,
        storeDir: escapeProperty(paths.data('rocketmq')),
        flushDiskType: durability === 'host' ? 'SYNC_FLUSH' : 'ASYNC_FLUSH',
      });
      writeConf('rmq-proxy.json.tmpl', proxyConf, {
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
    probe: () => probeProxy(ports),
    hasten: async (reason) => {
      if (reason !== UNREGISTERED || performance.now() - hastenedAtMs < HASTEN_EVERY_MS) return;
      hastenedAtMs = performance.now();
      await registerNow(ports);
    },
  };
}

/**
 * On a busy machine every other broker starts before its client has found the name server, and then registers only
 * 10 s later. Setting its permission, to what it is, makes it register at once.
 */
async function registerNow(ports: StackPorts): Promise<void> {
  const readAndWrite = 'brokerPermission=6\n';
  try {
    await askRemoting({ host: '127.0.0.1', port: ports.broker }, REQUEST.updateBrokerConfig, readAndWrite);
  } catch {
    // it will register by itself
  }
}

/** Ready is three things: the broker has loaded its store, the name server knows it, gRPC is open. */
async function probeProxy(ports: StackPorts): Promise<ProbeResult> {
  const broker = { host: '127.0.0.1', port: ports.broker };
  try {
    if (!(await isBrokerActive(broker))) return 'the broker is not activated yet';
    const known = await masterBrokers({ host: '127.0.0.1', port: ports.namesrv }, DEFAULT_CLUSTER);
    if (!known.some(({ port }) => port === ports.broker)) return UNREGISTERED;
  } catch (error) {
    return reasonOf(error);
  }
  return probePort(ports.grpc);
}
