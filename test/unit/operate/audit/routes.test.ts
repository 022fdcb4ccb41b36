import { expect } from 'chai';
import request from 'supertest';
import type { AuditFilter, AuditPage, StoredAuditEntry } from '../../../../src/core/ports/audit-log.js';
import { bearer, FakeServices, startServer, type Started } from '../../http/http-harness.js';

const SHARED = {
  auditId: '9',
  actor: 'boss',
  action: 'sale.opened',
  subject: 'sale:7',
  before: { state: 'warm' },
  after: { state: 'open' },
};
const ENTRY: StoredAuditEntry = { ...SHARED, atMs: Date.UTC(2030, 0, 1) };

describe('admin audit', () => {
  let server: Started;
  let asked: [AuditFilter, AuditPage][];

  beforeEach(async () => {
    asked = [];
    const list = async (filter: AuditFilter, page: AuditPage): Promise<StoredAuditEntry[]> => {
      asked.push([filter, page]);
      return Array<StoredAuditEntry>(Math.min(page.max, 2)).fill(ENTRY);
    };
    server = await startServer(
      new FakeServices({ audit: { list, append: () => Promise.reject(new Error('nothing is written')) } }),
    );
  });
  afterEach(() => server.stop());

  const get = (query: string): request.Test =>
    request(server.operatorsUrl)
      .get(`/admin/v1/audit${query}`)
      .set('authorization', bearer('boss', ['admin']));

  it('lists entries with their state before and after, and the start of a next page', async () => {
    const shown = { ...SHARED, at: '2030-01-01T00:00:00.000Z' };
    expect((await get('').expect(200)).body).to.deep.equal({ entries: [shown, shown], next: null });
    expect((await get('?limit=2').expect(200)).body.next).to.equal('9');
    expect(asked.map(([, page]) => page)).to.deep.equal([{ max: 50 }, { max: 2 }]);
  });

  it('accepts every filter', async () => {
    const query = 'subject=sale:7&actor=boss&action=sale.opened&since=2030-01-01T00:00:00Z&before=12&limit=1';
    await get(`?${query}`).expect(200);
    expect(asked).to.deep.equal([
      [
        { subject: 'sale:7', actor: 'boss', action: 'sale.opened', sinceMs: Date.UTC(2030, 0, 1) },
        { beforeId: '12', max: 1 },
      ],
    ]);
  });

  it('returns 400 and names the field if a filter is wrong [S6]', async () => {
    const wrong = { subject: 'subject=', limit: 'limit=201', since: 'since=now', before: 'before=x', who: 'who=x' };
    for (const [field, query] of Object.entries({ ...wrong, actor: 'actor=a&actor=b' })) {
      const { body } = await get(`?${query}`).expect(400);
      expect(body.errors.map((error: { field: string }) => error.field)).to.deep.equal([field]);
    }
    expect(asked).to.deep.equal([]);
  });
});
