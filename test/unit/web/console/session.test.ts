import { expect } from 'chai';
import sinon from 'sinon';
import { ApiError } from '../../../../web/console/api/api-error.js';
import { Session } from '../../../../web/console/api/session.js';
import type { Me } from '../../../../web/console/api/types.js';

class MemoryStorage {
  readonly items = new Map<string, string>();
  read = (name: string): string | null => this.items.get(name) ?? null;
  write = (name: string, value: string): void => void this.items.set(name, value);
  remove = (name: string): void => void this.items.delete(name);
}

const meUntil = (expiresAtMs: number): Me => ({ userId: 'olga', roles: ['operator'], role: 'operator', expiresAtMs });

describe('console session', () => {
  it('keeps an accepted token in the tab until the session ends', async () => {
    const storage = new MemoryStorage();
    const session = new Session(storage, async () => meUntil(Date.now() + 60_000));
    expect(session.state.value.is).to.equal('signed_out');
    await session.signIn('good');
    expect(session.state.value).to.include({ is: 'signed_in' });
    expect([...storage.items.values()]).to.deep.equal(['good']);
    session.signOut();
    expect([session.state.value.is, session.token, storage.items.size]).to.deep.equal(['signed_out', null, 0]);
  });

  it('ignores a refused token', async () => {
    const storage = new MemoryStorage();
    const session = new Session(storage, () => Promise.reject(new ApiError(401, 'unauthorized', 'no')));
    const error = await session.signIn('bad').catch((fault: unknown) => fault);
    expect(error).to.be.instanceOf(ApiError);
    expect([session.state.value.is, storage.items.size]).to.deep.equal(['signed_out', 0]);
  });

  it('continues after a reload, unless its token was refused', async () => {
    const storage = new MemoryStorage();
    storage.write('seckill.console.token', 'kept');
    const asked: string[] = [];
    const again = new Session(storage, async (token) => {
      asked.push(token);
      return meUntil(Date.now() + 60_000);
    });
    expect(again.state.value.is).to.equal('checking');
    await again.restore();
    expect([again.state.value.is, asked]).to.deep.equal(['signed_in', ['kept']]);
    again.signOut();

    storage.write('seckill.console.token', 'old');
    const refused = new Session(storage, () => Promise.reject(new ApiError(401, 'unauthorized', 'no')));
    await refused.restore();
    expect([refused.state.value.is, storage.items.size]).to.deep.equal(['signed_out', 0]);
  });

  it('keeps a token while the api cannot check it, and checks it again', async () => {
    const clock = sinon.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    sinon.stub(Math, 'random').returns(0);
    const storage = new MemoryStorage();
    storage.write('seckill.console.token', 'kept');
    const answers: (() => Promise<Me>)[] = [
      () => Promise.reject(new ApiError(0, 'unreachable', 'Failed to fetch')),
      () => Promise.reject(new ApiError(503, 'unavailable', 'redis does not answer')),
      () => Promise.reject(new ApiError(502, 'no_problem', '502 Bad Gateway')),
      async () => meUntil(60_000),
    ];
    let asked = 0;
    const session = new Session(storage, () => (answers[asked++] as () => Promise<Me>)());
    await session.restore();
    expect([session.state.value.is, session.token, asked]).to.deep.equal(['unreachable', 'kept', 1]);
    await clock.tickAsync(250);
    expect(session.state.value).to.have.nested.property('error.code', 'unavailable');
    await session.restore(); // on request
    expect([session.state.value.is, asked]).to.deep.equal(['unreachable', 3]);
    await clock.tickAsync(999);
    expect(asked, 'the pauses grow').to.equal(3);
    await clock.tickAsync(1);
    expect([session.state.value.is, asked, storage.items.size]).to.deep.equal(['signed_in', 4, 1]);
    session.signOut();
    await clock.tickAsync(60_000);
    expect(asked).to.equal(4);
  });

  it('is signed out if its token has lost its role', async () => {
    const storage = new MemoryStorage();
    storage.write('seckill.console.token', 'buyer');
    const refused = new Session(storage, () => Promise.reject(new ApiError(403, 'role_needed', 'no')));
    await refused.restore();
    expect([refused.state.value.is, storage.items.size]).to.deep.equal(['signed_out', 0]);

    storage.write('seckill.console.token', 'slow');
    const session = new Session(storage, async () => meUntil(Date.now() + 60_000));
    const restored = session.restore();
    session.signOut();
    await restored;
    expect([session.state.value.is, session.token, storage.items.size]).to.deep.equal(['signed_out', null, 0]);
  });

  it('ends with its token, and remembers its user', async () => {
    const clock = sinon.useFakeTimers({ now: 1_000_000, toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    try {
      const storage = new MemoryStorage();
      const session = new Session(storage, async () => meUntil(Date.now() + 5_000));
      await session.signIn('first');
      clock.tick(4_999);
      expect(session.state.value.is).to.equal('signed_in');
      clock.tick(1);
      expect(session.state.value).to.deep.include({ is: 'ended', why: 'expired', me: meUntil(1_005_000) });
      expect(storage.items.size).to.equal(0);

      await session.signIn('second');
      session.refused('first'); // a late answer to the first token
      expect(session.state.value.is).to.equal('signed_in');
      session.refused('second');
      expect(session.state.value).to.include({ is: 'ended', why: 'refused' });
    } finally {
      clock.restore();
    }
  });
});
