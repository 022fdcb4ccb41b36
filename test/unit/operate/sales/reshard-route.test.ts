import { expect } from 'chai';
import request from 'supertest';
import type { NotResharded, Resharded } from '../../../../src/core/sale-repair.js';
import { bearer, FakeServices, startServer, type Started } from '../../http/http-harness.js';

describe('admin reshard', () => {
  let server: Started;
  let asked: unknown[];
  let answer: Resharded;
  beforeEach(async () => {
    asked = [];
    answer = { outcome: 'resharded', buckets: 8, epoch: 3, unitsLeft: 40, lockedMs: 120 };
    const reshard = async (...order: unknown[]): Promise<Resharded> => (asked.push(order), answer);
    server = await startServer(new FakeServices({ reshard }));
  });
  afterEach(() => server.stop());

  const post = (body: unknown, saleId = '7'): request.Test =>
    request(server.operatorsUrl)
      .post(`/admin/v1/sales/${saleId}/reshard`)
      .set('authorization', bearer('boss', ['admin']))
      .send(body as object);

  it('splits a sale in the name of the admin and returns the result', async () => {
    const { body } = await post({ buckets: 8 }).expect(200);
    expect(body).to.deep.equal({ buckets: 8, epoch: 3, unitsLeft: 40, lockedMs: 120 });
    expect(asked).to.deep.equal([['7', { actor: 'boss', buckets: 8 }]]);
  });

  it('maps each refusal to its status and sentence', async () => {
    const words: Readonly<Record<NotResharded, [number, string]>> = {
      not_found: [404, 'not_found'],
      in_repair: [503, 'repairing'],
      already_resharded: [409, 'wrong_state'],
      not_a_multiple: [409, 'wrong_state'],
      superseded: [409, 'wrong_state'],
      draft: [409, 'wrong_state'],
      closed: [409, 'wrong_state'],
    };
    const details = new Set<string>();
    for (const [outcome, [status, code]] of Object.entries(words)) {
      answer = { outcome: outcome as NotResharded };
      const { body } = await post({ buckets: 8 }).expect(status);
      expect(body.code, outcome).to.equal(code);
      details.add(body.detail as string);
    }
    expect(details.size, 'each has its own sentence').to.equal(Object.keys(words).length);
  });

  it('returns 400 if the number of buckets is invalid [S6]', async () => {
    for (const body of [{}, { buckets: 1 }, { buckets: 65 }, { buckets: '8' }, { buckets: 8, force: true }]) {
      await post(body).expect(400);
    }
    await post({ buckets: 8 }, 'x').expect(400);
    expect(asked).to.deep.equal([]);
  });
});
