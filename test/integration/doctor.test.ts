import { expect } from 'chai';
import { until } from '../chaos/harness/wait.js';
import { runCommand, type CommandEnd } from '../helpers/command.js';
import { type StackEnv } from '../helpers/stack-env.js';
import { useSystem } from '../helpers/system.js';

interface Body {
  readonly verdict: string;
  readonly checks: readonly { readonly id: string; readonly verdict: string; readonly says: string }[];
}

describe('seckill doctor', () => {
  const system = useSystem(async ({ programs }) => {
    await Promise.all((['worker', 'keeper'] as const).map((name) => programs.start(name)));
  });
  const doctor = (args: readonly string[] = [], change: Partial<StackEnv> = {}): Promise<CommandEnd> =>
    runCommand(['doctor', ...args], { ...system.stack.env, ...change });
  const bodyOf = ({ stdout }: CommandEnd): Body => JSON.parse(stdout) as Body;
  const lineOf = (end: CommandEnd, id: string) => bodyOf(end).checks.find((one) => one.id === id);

  it('adds up the pools of all running programs, and doubles the sum for an update', async () => {
    const env = { ...system.stack.env, MYSQL_POOL_MAX: '48' };
    let says = '';
    await until(
      'both have reported',
      async () => {
        const line = lineOf(await runCommand(['doctor', '--json'], env), 'mysql.connections');
        says = `${line?.verdict}: ${line?.says}`;
        return /: [2-9] programs/.test(says);
      },
      { everyMs: 500 },
    );
    // killed programs of another test count for ten seconds
    expect(says).to.match(/^risky: [2-5] programs with MYSQL_POOL_MAX 48 open up to \d+ connections, twice as many/);
  });

  it('prints every line by its id with --json, and fails for unaccepted risks with --strict', async () => {
    const body = bodyOf(await doctor(['--json']));
    expect(body.verdict).to.equal('risky');
    const risky = body.checks.filter(({ verdict }) => verdict === 'risky').map(({ id }) => id);
    expect(risky).to.include('mysql.binlog');
    expect((await doctor(['--strict'])).code).to.equal(1);
    const accepted = await doctor(['--strict', '--accept', risky.join(',')]);
    expect(accepted.code, accepted.stdout).to.equal(0);
    expect(accepted.stdout).to.match(/mysql\.binlog +accepted: There is no binary log/);
  });

  it('ignores settings that a worker does not read with --program worker', async () => {
    const { code, stdout } = await doctor(['--program', 'worker'], { JWT_SECRET: 'too-short' });
    expect(code, stdout).to.equal(0);
  });
});
