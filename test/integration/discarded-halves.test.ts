import { expect } from 'chai';
import { isGivenUp, leaveHalfMessagesOpen, withBrokerSetting } from '../chaos/harness/broker.js';
import { openSale } from '../chaos/harness/sales.js';
import { pendingBatchesOf } from '../chaos/harness/sale-state.js';
import { until } from '../chaos/harness/wait.js';
import { TOPICS } from '../../src/core/topics.js';
import { runCommand } from '../helpers/command.js';
import { expectInvariants } from '../helpers/invariants.js';
import { useSystem } from '../helpers/system.js';

describe('half messages after the last check-back', () => {
  const system = useSystem();

  const mq = (...args: readonly string[]) => runCommand(['mq', ...args], system.stack.env);

  it('are listed if they hold units, and become an order after an audited `mq resume`', async () => {
    const { stack, programs } = system;
    const { saleId } = await openSale(stack, { stock: 3 });
    let key = '';
    await withBrokerSetting(stack, 'transactionCheckMax', 1, async () => {
      await leaveHalfMessagesOpen(stack, saleId, 1);
      [key = ''] = await pendingBatchesOf(stack, saleId);
      await until('the broker gives it up', () => isGivenUp(stack, key), { everyMs: 500 });
    });
    const discarded = async (): Promise<Record<string, unknown> | undefined> => {
      const { lines } = await mq('halves', '--discarded', '--json');
      return (lines as Record<string, unknown>[]).find((half) => half.key === key);
    };
    const half = await discarded();
    expect(half).to.include({ topic: TOPICS.purchase, saleId, purchases: 1, resumedAtMs: null });

    // by the id of the client, and by the offset
    for (const id of [half?.messageId, half?.offsetId]) {
      const { lines } = await mq('messages', '--topic', 'TRANS_CHECK_MAX_TIME_TOPIC', '--id', String(id), '--json');
      expect(lines, String(id)).to.have.length(1);
      expect(lines[0]).to.have.nested.property('properties.KEYS', key);
    }

    const shown = await mq('resume', '--key', key);
    expect(shown.code).to.equal(2);
    expect(shown.stdout).to.include(key);
    expect(shown.stderr).to.match(/1 can be resumed; nothing was done\. Add --yes/);
    expect((await discarded())?.resumedAtMs, 'nothing was done').to.equal(null);

    expect((await mq('resume', '--key', key, '--yes')).code).to.equal(0);
    expect((await discarded())?.resumedAtMs).to.be.within(Date.now() - 60_000, Date.now() + 1_000);
    const again = await mq('resume', '--key', key, '--yes');
    expect([again.code, again.stderr]).to.deep.equal([
      1,
      `The brokers keep no half message of key ${key} that can be resumed.\n`,
    ]);
    const audit = await runCommand(['audit', 'list', '--subject', `half_message:${key}`, '--json'], stack.env);
    expect(audit.lines).to.have.length(1);
    expect(audit.lines[0]).to.include({ action: 'half_message.resumed' });

    await Promise.all([programs.start('api'), programs.start('worker')]);
    await until('it is an order', async () => (await pendingBatchesOf(stack, saleId)).length === 0);
    const figures = await expectInvariants(stack, saleId);
    expect(figures).to.include({ stock: 3, sold: 1, unitsLeft: 2 });
  });
});
