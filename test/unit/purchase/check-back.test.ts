import { expect } from 'chai';
import type { Log } from '../../../src/core/ports/log.js';
import { signedMessages, TEST_SIGNATURES } from '../../helpers/signatures.js';
import { silentLog } from '../../helpers/silent-log.js';
import { OperationalError } from '../../../src/core/errors.js';
import { SIGNATURE_PROPERTY } from '../../../src/core/message-signatures.js';
import type { OpenHalf } from '../../../src/core/ports/channels.js';
import type { DeadLetter } from '../../../src/core/ports/dead-letters.js';
import type { ResolveVerdict } from '../../../src/core/ports/stock-store.js';
import { GROUPS, TOPICS } from '../../../src/core/topics.js';
import { createCheckBack } from '../../../src/purchase/check-back.js';
import { batchOf, purchasesOf } from '../../helpers/sales.js';

const batch = batchOf({ saleId: '7', epoch: 3, bucket: 2 }, purchasesOf('u1', 'u2'));
const messages = signedMessages();

const halfOf = (body: string, signature = TEST_SIGNATURES.sign(TOPICS.purchase, body)): OpenHalf => ({
  messageId: 'm1',
  body,
  properties: new Map([[SIGNATURE_PROPERTY, signature]]),
});

describe('check-back', () => {
  const answers: Record<ResolveVerdict, string> = {
    deducted: 'commit',
    claimed: 'commit',
    unreplicated: 'commit',
    aborted: 'rollback',
    outlived: 'commit',
    no_answer: 'no_answer',
    outcome_unknown: 'no_answer',
  };
  for (const [verdict, answer] of Object.entries(answers) as [ResolveVerdict, string][]) {
    it(`maps ${verdict} to ${answer} [T2, T3, T10]`, async () => {
      const checkBack = createCheckBack(async () => verdict, messages, silentLog);
      expect(await checkBack(halfOf(batch.body))).to.equal(answer);
    });
  }

  it('resolves the batch that the body names, in the epoch of its creation', async () => {
    const asked: unknown[] = [];
    const resolve = async (ref: unknown): Promise<ResolveVerdict> => {
      asked.push(ref);
      return 'deducted';
    };
    await createCheckBack(resolve, messages, silentLog)(halfOf(batch.body));
    expect(asked).to.have.length(1);
    expect(asked[0]).to.include({ batchId: batch.batchId, saleId: '7', bucket: 2, epoch: 3 });
  });

  for (const [what, body] of [
    ['not JSON', '{'],
    ['empty', ''],
    ['a later version', JSON.stringify({ ...JSON.parse(batch.body), v: 3 })],
    ['without purchases', JSON.stringify({ ...JSON.parse(batch.body), purchases: [] })],
    ['with a name that breaks a key', JSON.stringify({ ...JSON.parse(batch.body), saleId: '7}:x' })],
  ] as const) {
    it(`gives no answer, never a rollback, for a body that is ${what} [M7, T10]`, async () => {
      const errors: string[] = [];
      const log: Log = { ...silentLog, error: (_, message) => errors.push(message) };
      const resolve = (): never => expect.fail('asked');
      expect(await createCheckBack(resolve, messages, log)(halfOf(body))).to.equal('no_answer');
      expect(errors).to.have.length(1);
    });
  }

  it('gives no answer after any error of the store [T10]', async () => {
    const resolve = async (): Promise<never> => {
      throw new Error('a bug');
    };
    const checked = await createCheckBack(resolve, messages, silentLog)(halfOf(batch.body)).catch(() => 'thrown');
    expect(checked).to.equal('thrown');
  });

  it('parks and rolls back a message without our signature, and does not read its marker', async () => {
    const parked: DeadLetter[] = [];
    const deadLetters = { park: async (one: DeadLetter) => (parked.push(one), 'parked' as const) };
    const resolve = (): never => expect.fail('asked');
    const checkBack = createCheckBack(resolve, signedMessages({ deadLetters }), silentLog);
    const ofAnotherTopic = TEST_SIGNATURES.sign(TOPICS.redrive, batch.body);
    expect(await checkBack(halfOf(batch.body, ofAnotherTopic))).to.equal('rollback');
    expect(parked).to.have.length(1);
    expect(parked[0]).to.include({ reason: 'forged', group: GROUPS.writer, originTopic: TOPICS.purchase });
  });

  it('gives no answer if it cannot park the message, so that the broker asks again', async () => {
    const deadLetters = { park: () => Promise.reject(new OperationalError('mysql', 'away', { retryable: true })) };
    const checkBack = createCheckBack(() => expect.fail('asked'), signedMessages({ deadLetters }), silentLog);
    const thrown = await checkBack(halfOf(batch.body, 'x')).catch((error: Error) => error.name);
    expect(thrown, 'which counts as no answer').to.equal('OperationalError');
  });
});
