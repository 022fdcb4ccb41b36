import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { userInfo } from 'node:os';
import { stackEnv } from '../env.js';
import { probeMariadb } from '../probes.js';
import { ensureSecrets, readSecrets } from '../secrets.js';
import { writeConf } from '../template.js';
import { findMariadbHome, initialiseMariadb } from './mariadb-data.js';
import { removeUnfinishedTcLog } from './mariadb-tc-log.js';
import type { ServerSite, ServerSpec } from './server-spec.js';

export function mariadbSpec({ paths, ports }: ServerSite): ServerSpec {
  return {
    name: 'mariadb',
    label: 'MariaDB',
    portNames: ['mariadb'],
    startTimeoutMs: 120_000,
    stopTimeoutMs: 30_000,
    prepare: async ({ artifacts }, signal) => {
      const mariadbd = artifacts.mariadbd;
      const home = findMariadbHome(mariadbd);
      const confFile = paths.conf('mariadb.cnf');
      mkdirSync(dirname(paths.mariadbSocket), { recursive: true });
      writeConf('mariadb.cnf', confFile, {
        mariadbPort: ports.mariadb,
        ...home,
        dataDir: paths.data('mariadb'),
        socket: paths.mariadbSocket,
        pidFile: paths.conf('mariadbd.pid'),
        tmpDir: paths.tmp('mariadb'),
      });
      // it refuses to run as root unless told that this is meant
      const args = [`--defaults-file=${confFile}`, `--user=${userInfo().username}`];
      await initialiseMariadb({
        mariadbd,
        args,
        shareDir: home.shareDir,
        dataDir: paths.data('mariadb'),
        password: ensureSecrets(paths.secretsFile).mysqlPassword,
        logFile: paths.log('mariadb-init.log'),
        signal,
      });
      removeUnfinishedTcLog(paths.data('mariadb'));
      return { file: mariadbd, args };
    },
    probe: async () => {
      const secrets = readSecrets(paths.secretsFile);
      return secrets === null ? 'it was never started' : probeMariadb(stackEnv(ports, secrets).MYSQL_URL);
    },
  };
}
