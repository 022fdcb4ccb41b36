import { expect } from 'chai';
import { forgetDeadProducers } from '../../src/chaos/harness/dead-producers.js';
import type { Program } from '../../src/chaos/harness/programs.js';
import { until } from '../../src/chaos/harness/until.js';
import { TOPICS } from '../../src/domain/topics.js';
import { producersOf } from '../../src/stack/broker-state.js';
import { useSystem } from '../helpers/system.js';

describe('producers that the broker knows', () => {
  let killed: Program;
  let living: Program;
  const system = useSystem(async ({ programs }) => {
    [killed, living] = await Promise.all([programs.start('api'), programs.start('api')]);
  });

  /** Whether the broker would ask this process. */
  async function isKnown({ pid }: Program): Promise<boolean> {
    const broker = { host: '127.0.0.1', port: system.stack.servers.ports.broker };
    return (await producersOf(broker, TOPICS.purchase)).some((id) => id.includes(`@${pid}@`));
  }

  it('an api that was killed is one of them until it is taken off the list; one that lives stays', async () => {
    await until('both are known', async () => (await isKnown(killed)) && (await isKnown(living)));
    await killed.crash();
    expect(await isKnown(killed), 'after kill -9').to.equal(true);
    await forgetDeadProducers(system.stack);
    expect(await isKnown(killed), 'off the list').to.equal(false);
    expect(await isKnown(living), 'the other one').to.equal(true);
  });
});
