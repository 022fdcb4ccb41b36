import { mkdirSync } from 'node:fs';
import { reasonOf, type ProbeResult } from '../probes.js';
import { askRemoting, REQUEST } from '../../../../src/rocketmq/admin/remoting.js';
import { escapeProperty, writeConf } from '../template.js';
import { javaArgs } from './java-args.js';
import type { ServerSite, ServerSpec } from './server-spec.js';

export function namesrvSpec({ paths, ports }: ServerSite): ServerSpec {
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
