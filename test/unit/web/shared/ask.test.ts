import { expect } from 'chai';
import { ask, type Answer, type Request } from '../../../../web/shared/ask.js';

const never = new AbortController().signal;
/** Asks a server that gives this answer, on a clock that advances by 10 ms with each read. */
async function asked(
  answer: (path: string, init: RequestInit) => Promise<Response>,
  request: Partial<Request> = {},
): Promise<Answer> {
  let nowMs = 0;
  const line = {
    fetch: ((path: string, init: RequestInit) => answer(path, init)) as typeof fetch,
    monotonicMs: () => (nowMs += 10),
  };
  return ask({ path: '/v1/sales/7', ...request }, 1000, never, line);
}
const json = (status: number, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  Promise.resolve(
    new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', ...headers } }),
  );

describe('request of a page', () => {
  it('sends its token in the header and its body as JSON', async () => {
    let sent: [string, RequestInit] | undefined;
    const answer = await asked(
      (...request) => {
        sent = request;
        return json(202, { status: 'pending' });
      },
      { method: 'POST', path: '/v1/x', token: 'secret', headers: { 'Idempotency-Key': 'k' }, body: { quantity: 2 } },
    );
    expect(sent?.[0]).to.equal('/v1/x');
    expect(sent?.[1]).to.include({ method: 'POST', body: '{"quantity":2}', cache: 'no-store' });
    expect(sent?.[1].headers).to.deep.equal({
      Authorization: 'Bearer secret',
      'Content-Type': 'application/json',
      'Idempotency-Key': 'k',
    });
    expect(answer).to.deep.equal({
      ok: true,
      status: 202,
      body: { status: 'pending' },
      sentMs: 10,
      receivedMs: 20,
      keptMs: 0,
    });
  });

  it('knows the maximum age of its answer from Age and Cache-Control', async () => {
    const caching = 'public, max-age=1, stale-while-revalidate=1';
    for (const [headers, keptMs] of [
      [{}, 0],
      [{ 'cache-control': 'no-store' }, 0],
      [{ 'cache-control': 'no-store', age: '3' }, 0],
      [{ 'cache-control': caching }, 4000],
      [{ 'cache-control': caching, age: '0' }, 4000],
      [{ 'cache-control': caching, age: 'old' }, 4000],
      [{ age: '3' }, 7000],
    ] as const) {
      expect(await asked(() => json(200, {}, headers)), JSON.stringify(headers)).to.include({ keptMs });
    }
  });

  it('returns the code of a problem with the retry time, preferably from the body', async () => {
    const problem = { code: 'overloaded', retryAfterMs: 1500 };
    expect(await asked(() => json(503, problem, { 'retry-after': '2' }))).to.deep.equal({
      ok: false,
      code: 'overloaded',
      retryAfterMs: 1500,
    });
    expect(await asked(() => json(409, { code: 'closed' }))).to.deep.equal({
      ok: false,
      code: 'closed',
      retryAfterMs: null,
    });
  });

  it('treats a response from another server as no answer, but keeps its retry time', async () => {
    const html = (): Promise<Response> =>
      Promise.resolve(
        new Response('<h1>Bad gateway</h1>', {
          status: 502,
          headers: { 'content-type': 'text/html', 'retry-after': '3' },
        }),
      );
    expect(await asked(html)).to.deep.equal({ ok: false, code: 'no_answer', retryAfterMs: 3000 });
    const none = { ok: false, code: 'no_answer', retryAfterMs: null };
    expect(await asked(() => Promise.reject(new TypeError('Failed to fetch')))).to.deep.equal(none);
    expect(
      await asked(() => Promise.resolve(new Response('{"code":', { headers: { 'content-type': 'application/json' } }))),
      'cut',
    ).to.deep.equal(none);
  });

  it('treats a success without JSON as no answer, except 204', async () => {
    const page = (): Promise<Response> =>
      Promise.resolve(new Response('<h1>Welcome</h1>', { headers: { 'content-type': 'text/html' } }));
    expect(await asked(page)).to.deep.equal({ ok: false, code: 'no_answer', retryAfterMs: null });
    expect(await asked(() => json(200, 'welcome'))).to.include({ code: 'no_answer' });
    expect(await asked(() => Promise.resolve(new Response(null, { status: 204 })))).to.include({
      ok: true,
      status: 204,
      body: null,
    });
  });

  it('returns no answer if it hangs too long or is aborted', async () => {
    const hang = (_path: string, { signal }: RequestInit): Promise<Response> =>
      new Promise((_, reject) =>
        signal?.addEventListener('abort', () => reject(new DOMException('gone', 'AbortError'))),
      );
    const line = { fetch: hang as typeof fetch, monotonicMs: () => 0 };
    expect(await ask({ path: '/' }, 20, never, line)).to.include({ code: 'no_answer' });
    const stop = new AbortController();
    const pending = ask({ path: '/' }, 60_000, stop.signal, line);
    stop.abort();
    expect(await pending).to.include({ code: 'no_answer' });
  });
});
