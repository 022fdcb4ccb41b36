import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { apiCommand, keeperCommand, workerCommand } from '../../src/cli/programs.js';
import { STOP_TIMEOUT_MS } from '../../src/programs/run-program.js';

const FOLDER = join(REPO_DIR, 'deploy/systemd');
const CHECKER = '/usr/bin/systemd-analyze';
const UNITS = readdirSync(FOLDER);
const valueIn = (unit: string, key: string): string | undefined =>
  new RegExp(`^${key}=(.*)$`, 'm').exec(readFileSync(join(FOLDER, unit), 'utf8'))?.[1];

describe('guard: units for systemd', () => {
  it('start each program with options that its command has', () => {
    const known = new Map([apiCommand(), workerCommand(), keeperCommand()].map((one) => [one.name(), one]));
    const started = UNITS.map((unit) => {
      const [name = '', ...args] =
        /dist\/cli\/main\.js (.*)/.exec(valueIn(unit, 'ExecStart') ?? '')?.[1]?.split(' ') ?? [];
      const options = known.get(name)?.options.map(({ long }) => long);
      expect(
        args.filter((arg) => arg.startsWith('--') && !options?.includes(arg)),
        unit,
      ).to.deep.equal([]);
      return name;
    });
    expect(started).to.have.members([...known.keys()]);
  });

  it('allow more time than a program needs to stop', () => {
    for (const unit of UNITS) {
      expect(Number(valueIn(unit, 'TimeoutStopSec')) * 1000, unit).to.be.above(STOP_TIMEOUT_MS);
    }
  });

  it('restart a program indefinitely', () => {
    for (const unit of UNITS) {
      expect(valueIn(unit, 'Restart'), unit).to.equal('always');
      expect(valueIn(unit, 'StartLimitIntervalSec'), unit).to.equal('0');
    }
  });

  it('restart a program that hangs, and write no core file, which would hold secrets', () => {
    for (const unit of UNITS) {
      const [type, access, seconds, signal] = ['Type', 'NotifyAccess', 'WatchdogSec', 'WatchdogSignal'].map((key) =>
        valueIn(unit, key),
      );
      expect([type, access, signal], unit).to.deep.equal(['notify', 'all', 'SIGKILL']);
      expect(Number(seconds), unit).to.be.within(10, 60);
    }
  });

  it('give every program the same priority, because buyers wait for the keeper too', () => {
    for (const unit of UNITS)
      for (const key of ['Nice', 'CPUWeight', 'CPUQuota', 'CPUSchedulingPolicy', 'IOSchedulingClass'])
        expect(valueIn(unit, key), `${key} of ${unit}`).to.equal(undefined);
  });

  it('give each program its own settings file', () => {
    const files = UNITS.map((unit) => [
      valueIn(unit, 'EnvironmentFile'),
      /main\.js (\w+)/.exec(valueIn(unit, 'ExecStart') ?? '')?.[1],
    ]);
    for (const [file, program] of files) expect(file).to.equal(`/etc/seckill/${program}.env`);
  });

  it('allow the IP, systemd and netlink sockets that the RocketMQ client needs', () => {
    for (const unit of UNITS) {
      expect(valueIn(unit, 'RestrictAddressFamilies')?.split(' '), unit).to.have.members([
        ...['AF_INET', 'AF_INET6', 'AF_UNIX', 'AF_NETLINK'],
      ]);
    }
  });

  it('run from a folder with all parts of the package, as docs/deployment.md lists them', () => {
    const read = (file: string): string => readFileSync(join(REPO_DIR, file), 'utf8');
    const { files } = JSON.parse(read('package.json')) as { files: string[] };
    const [, listed = ''] = /install (.*) in `\/opt\/seckill`/.exec(read('docs/deployment.md')) ?? [];
    const parts = [...listed.matchAll(/`([^`]+)`/g)].map(([, part]) => part);
    const needed = files.filter((file) => !file.startsWith('!') && file !== 'CHANGELOG.md');
    expect(parts).to.include.members(['package.json', 'node_modules', ...needed]);
  });

  it('hide other processes from a program and forbid unneeded system calls', () => {
    for (const unit of UNITS) {
      expect(valueIn(unit, 'ProtectProc'), unit).to.equal('invisible');
      expect(valueIn(unit, 'SystemCallFilter'), unit).to.match(/^@system-service( |$)/);
      expect(valueIn(unit, 'SystemCallErrorNumber'), unit).to.equal('EPERM');
    }
  });

  it('pass systemd-analyze verify', function () {
    if (!existsSync(CHECKER)) {
      console.log(`        skipped: there is no ${CHECKER} here`);
      this.skip();
    }
    const folder = mkdtempSync(join(tmpdir(), 'seckill-units-'));
    try {
      const files = UNITS.map((unit) => {
        // Node may be installed elsewhere on this machine
        const text = readFileSync(join(FOLDER, unit), 'utf8').replace('/usr/bin/node', process.execPath);
        writeFileSync(join(folder, unit), text);
        return join(folder, unit);
      });
      const { status, stderr } = spawnSync(CHECKER, ['verify', '--man=no', ...files], { encoding: 'utf8' });
      expect({ status, stderr }).to.deep.equal({ status: 0, stderr: '' });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
