import { expect } from 'chai';
import { runCommand } from '../helpers/command.js';
import { useSystem } from '../helpers/system.js';

interface Line {
  readonly id: string;
  readonly verdict: string;
  readonly says: string;
}

describe('seckill doctor on the secure stack', () => {
  const system = useSystem();
  const doctor = async (change: Readonly<Record<string, string>> = {}) => {
    const { code, stdout, stderr } = await runCommand(['doctor', '--json'], { ...system.stack.env, ...change });
    expect(stdout, stderr).to.match(/^\{/);
    const { checks } = JSON.parse(stdout) as { readonly checks: readonly Line[] };
    const wrong = checks.filter(({ verdict }) => verdict === 'wrong').map(({ id, says }) => `${id}: ${says}`);
    return { code, wrong, lineOf: (id: string) => checks.find((one) => one.id === id) };
  };

  it('reports no problem, every connection as encrypted, and brokers that accept only TLS', async () => {
    const { code, wrong, lineOf } = await doctor();
    expect(wrong).to.deep.equal([]);
    expect(code).to.equal(0);
    for (const id of ['mysql.tls', 'redis.tls', 'rocketmq.tls', 'rocketmq.brokers', 'rocketmq.access']) {
      expect(lineOf(id), JSON.stringify(lineOf(id))).to.include({ verdict: 'ok' });
    }
  });
});
