import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeAuthority, type Certified } from '../../deploy/local/stack/certificates.js';
import { runCommand } from '../helpers/command.js';
import type { StackEnv } from '../helpers/stack-env.js';
import { useSystem } from '../helpers/system.js';

/** Limit for a command, because loading Node takes ten seconds on a busy machine. */
const SENTENCE_MS = 40_000;
const WORKER = ['worker', '--metrics-port', '0'];

type Changes = Readonly<Record<string, string>>;

describe('a program with wrong settings', () => {
  const system = useSystem();
  let dir: string;
  let stranger: Certified;
  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'seckill-wrong-'));
    stranger = await makeAuthority('another authority');
  });
  after(() => rmSync(dir, { recursive: true, force: true }));

  const file = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text);
    return join(dir, name);
  };
  const strangersFile = (): string => file('stranger.pem', stranger.cert);

  /** Returns the error line with which a command ends. */
  async function sentenceOf(args: readonly string[], changes: Changes) {
    const startedMs = performance.now();
    const { code, stderr } = await runCommand(args, { ...system.stack.env, ...changes } as StackEnv);
    const tookMs = performance.now() - startedMs;
    const lines = stderr.split('\n').filter((line) => line.startsWith('seckill: '));
    const more = stderr.split('\n').filter((line) => line.startsWith('  '));
    const sentence = [...lines, ...(/is invalid:$/.test(lines[0] ?? '') ? more : [])].join(' ');
    console.log(`      ${(tookMs / 1000).toFixed(1)} s  ${sentence}`);
    expect(code, stderr).to.be.oneOf([1, 2]);
    expect(lines, stderr).to.have.length(1);
    expect(tookMs).to.be.lessThan(SENTENCE_MS);
    return sentence;
  }

  const ports = () => system.stack.servers.ports;
  const cases: [string, readonly string[], () => Changes, () => RegExp][] = [
    [
      'MySQL: a wrong authority',
      ['migrate'],
      () => ({ MYSQL_TLS_CA_FILE: strangersFile() }),
      () =>
        new RegExp(
          `MySQL at 127\\.0\\.0\\.1:${ports().mysql} has a certificate that no authority in MYSQL_TLS_CA signed: correct MYSQL_TLS_CA`,
        ),
    ],
    [
      'MySQL: a wrong password',
      WORKER,
      () => ({ MYSQL_PASSWORD_FILE: file('password', 'wrong\n') }),
      () =>
        new RegExp(
          `MySQL at 127\\.0\\.0\\.1:${ports().mysql} refuses the user seckill: correct the user in MYSQL_URL, or MYSQL_PASSWORD`,
        ),
    ],
    [
      'MySQL: no TLS, where the server takes nothing else',
      ['migrate'],
      () => ({ MYSQL_TLS: 'off', MYSQL_TLS_CA_FILE: '', MYSQL_TLS_CERT_FILE: '', MYSQL_TLS_KEY_FILE: '' }),
      () => /MySQL at \S+ (refuses connections without TLS: set MYSQL_TLS to on|refuses the user seckill)/,
    ],
    [
      'Redis: a wrong authority',
      WORKER,
      () => ({ REDIS_TLS_CA_FILE: strangersFile() }),
      () =>
        new RegExp(
          `Redis at 127\\.0\\.0\\.1:${ports().redis} has a certificate that no authority in REDIS_TLS_CA signed: correct REDIS_TLS_CA`,
        ),
    ],
    [
      'Redis: redis:// where it speaks TLS',
      WORKER,
      () => ({
        REDIS_URL: system.stack.env.REDIS_URL.replace('rediss:', 'redis:'),
        REDIS_TLS_CA_FILE: '',
        REDIS_TLS_CERT_FILE: '',
        REDIS_TLS_KEY_FILE: '',
      }),
      () => /Redis at \S+ uses TLS: begin REDIS_URL with rediss/,
    ],
    [
      'Redis: a wrong password of its user',
      WORKER,
      () => ({ REDIS_PASSWORD_FILE: file('redis-password', 'wrong') }),
      () => /Redis at \S+ refuses the login: correct the user in REDIS_URL, or REDIS_PASSWORD \(WRONGPASS/,
    ],
    [
      'RocketMQ: a wrong authority',
      WORKER,
      () => ({ ROCKETMQ_TLS_CA_FILE: strangersFile() }),
      () =>
        new RegExp(
          `RocketMQ at 127\\.0\\.0\\.1:${ports().grpc} has a certificate that no authority in ROCKETMQ_TLS_CA signed: correct ROCKETMQ_TLS_CA`,
        ),
    ],
    [
      'RocketMQ: no TLS, where it takes nothing else',
      WORKER,
      () => ({ ROCKETMQ_TLS: 'off', ROCKETMQ_TLS_CA_FILE: '', ROCKETMQ_TLS_CERT_FILE: '', ROCKETMQ_TLS_KEY_FILE: '' }),
      () => /RocketMQ at \S+ uses TLS, perhaps only TLS: set ROCKETMQ_TLS to grpc or on/,
    ],
    [
      'RocketMQ: a wrong secret',
      WORKER,
      () => ({ ROCKETMQ_ACCESS_SECRET: 'wrong' }),
      () => /RocketMQ at \S+ refuses ROCKETMQ_ACCESS_KEY or ROCKETMQ_ACCESS_SECRET: correct them/,
    ],
    [
      'RocketMQ: a wrong authority for the admin protocol',
      ['topics'],
      () => ({ ROCKETMQ_TLS_CA_FILE: strangersFile() }),
      () =>
        new RegExp(
          `127\\.0\\.0\\.1:${ports().namesrv} has a certificate that no authority in ROCKETMQ_TLS_CA signed: correct ROCKETMQ_TLS_CA`,
        ),
    ],
  ];
  for (const [title, args, changes, sentence] of cases) {
    it(title, async () => {
      expect(await sentenceOf(args, changes())).to.match(sentence());
    });
  }
});
