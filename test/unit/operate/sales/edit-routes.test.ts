import { expect } from 'chai';
import request from 'supertest';
import type { SaleChange } from '../../../../src/core/ports/sale-edits.js';
import type { SaleCancelled, SaleEdited } from '../../../../src/sales/edit-sale.js';
import { saleOf } from '../../../helpers/sales.js';
import { AT_MS, bearer, FakeServices, startServer, type Started } from '../../http/http-harness.js';
import { partial } from '../../../helpers/partial.js';

const SALE = saleOf({ saleId: '7', state: 'warm' }, AT_MS);

describe('sale edits over HTTP', () => {
  let server: Started;
  let edited: SaleEdited;
  let ended: SaleCancelled;
  /** Edits that the editor received, with the operator. */
  let asked: unknown[];
  beforeEach(async () => {
    asked = [];
    edited = { outcome: 'done', sale: SALE };
    ended = { outcome: 'closed', sale: SALE };
    const end = (verb: string) => async (saleId: string, actor: string) => (asked.push([verb, saleId, actor]), ended);
    const editor = {
      edit: async (saleId: string, change: SaleChange, actor: string) => (asked.push([saleId, change, actor]), edited),
      cancel: end('cancel'),
      remove: end('delete'),
    };
    server = await startServer(new FakeServices({ editor: partial(editor) }));
  });
  afterEach(() => server.stop());
  const admin = bearer('boss', ['viewer', 'admin']);
  const patch = (body: object, token = admin): request.Test =>
    request(server.operatorsUrl).patch('/admin/v1/sales/7').set('authorization', token).send(body);

  it("PATCH: passes the edit and the operator's name to the editor, and returns the sale", async () => {
    const body = { title: ' New ', stock: 5, closesAt: '2030-01-01T00:00:00Z' };
    const answer = await patch(body).expect(200);
    expect(answer.body).to.include({ saleId: '7', state: 'warm' });
    expect(asked).to.deep.equal([['7', { title: 'New', stock: 5, closesAtMs: AT_MS }, 'boss']]);
  });

  it('PATCH: refuses an empty or invalid edit, and a caller who is not an operator [S6]', async () => {
    expect((await patch({}).expect(400)).body.detail).to.include('at least one of');
    const wrong = await patch({ stock: 0, sku: 'x' }).expect(400);
    expect(wrong.body.errors.map(({ field }: { field: string }) => field)).to.deep.equal(['stock', 'sku']);
    await patch({ stock: 5 }, bearer('ann')).expect(403);
    await patch({ stock: 5 }, bearer('vic', ['viewer'])).expect(403);
    expect(asked).to.deep.equal([]);
  });

  it('PATCH: maps each refusal to its status', async () => {
    const cases: [SaleEdited, number, string][] = [
      [{ outcome: 'not_enough', sale: SALE }, 409, 'units_not_free'],
      [{ outcome: 'wrong_state', sale: { ...SALE, state: 'closed' } }, 409, 'wrong_state'],
      [{ outcome: 'repairing', sale: SALE }, 503, 'repairing'],
      [{ outcome: 'not_found' }, 404, 'not_found'],
      [{ outcome: 'wrong', errors: [{ field: 'stock', message: 'stock is wrong.' }] }, 400, 'bad_request'],
    ];
    for (const [answer, status, code] of cases) {
      edited = answer;
      expect((await patch({ stock: 5 }).expect(status)).body.code).to.equal(code);
    }
  });

  it('DELETE and cancel: return the result, or the reason for a refusal', async () => {
    const end = {
      delete: () => request(server.operatorsUrl).delete('/admin/v1/sales/7').set('authorization', admin),
      cancel: () => request(server.operatorsUrl).post('/admin/v1/sales/7/cancel').set('authorization', admin),
    };
    for (const verb of ['delete', 'cancel'] as const) {
      ended = { outcome: verb === 'delete' ? 'deleted' : 'closed', sale: SALE };
      expect((await end[verb]().expect(200)).body).to.include({ outcome: ended.outcome });
      ended = { outcome: 'wrong_state', sale: { ...SALE, state: 'open' } };
      const { body } = await end[verb]().expect(409);
      expect(body.detail).to.match(verb === 'delete' ? /^Cannot delete a sale that is open/ : /has begun \(open\)/);
      ended = { outcome: 'not_found' };
      await end[verb]().expect(404);
    }
    expect(asked[0]).to.deep.equal(['delete', '7', 'boss']);
    expect(asked[3]).to.deep.equal(['cancel', '7', 'boss']);
  });
});
