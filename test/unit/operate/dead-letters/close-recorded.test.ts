import { expect } from 'chai';
import type { Job } from '../../../../src/core/job.js';
import type { Sale } from '../../../../src/core/sale.js';
import { closeRecorded } from '../../../../src/operate/dead-letters/close-recorded.js';
import { batchOf } from '../../../helpers/sales.js';
import { DeadLetterWorld } from './dead-letter-world.js';

describe('keeper: close-recorded-dead-letters', () => {
  let world: DeadLetterWorld;
  let sale: Sale;
  let job: Job;
  beforeEach(async () => {
    world = new DeadLetterWorld();
    sale = await world.openSale({ stock: 1000, limitPerBuyer: 2 });
    job = closeRecorded({ deadLetters: world.deadLetters, store: world.store, repository: world.mysql });
  });
  const states = (): string[] => world.deadLetters.deadLetters.map(({ state }) => state);

  it('closes a parked batch that another message has recorded, and marks it recorded in Redis', async () => {
    const [recorded, waiting] = [await world.parkedBatch(sale, ['u1', 'u2']), await world.parkedBatch(sale, ['u3'])];
    await world.recorded(recorded.batch, ['u2']);
    await job.runOnce();
    expect(world.deadLetter(recorded.deadLetterId)).to.include({
      state: 'replayed',
      note: 'recorded by another message of its batch: 1 live, 1 ended',
    });
    expect(world.deadLetter(waiting.deadLetterId).state).to.equal('parked');
    expect(world.store.bucket({ ...sale, bucket: 0 }).requests.get('u1/k1')?.state).to.equal('ordered');
    expect(world.deadLetters.audited.map(({ actor, action }) => [actor, action])).to.deep.equal([
      ['system', 'dead_letter.replayed'],
    ]);
  });

  it('leaves a batch that is recorded in part or by another batch to an operator', async () => {
    const [part, other] = [await world.parkedBatch(sale, ['u1', 'u2']), await world.parkedBatch(sale, ['u3'])];
    await world.recorded(batchOf(sale, part.batch.purchases.slice(0, 1), part.batch.batchId));
    await world.recorded(batchOf(sale, other.batch.purchases, 'another-batch'));
    await job.runOnce();
    expect(states()).to.deep.equal(['parked', 'parked']);
  });

  it('examines many in turn, and continues past a sale in repair', async () => {
    for (let i = 0; i < 250; i++) {
      const { batch } = await world.parkedBatch(sale, [`u${i}`]);
      await world.recorded(batch);
    }
    world.store.breakNext('mark_recorded_fails');
    const failed = await job.runOnce().catch((error: Error) => error.name);
    expect(failed).to.equal('OperationalError');
    for (let runs = 0; runs < 4; runs++) await job.runOnce();
    expect(new Set(states())).to.deep.equal(new Set(['replayed']));
  });
});
