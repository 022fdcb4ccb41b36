// Buys from a page of a shop, without the client: docs/buying.md. The origin of the page must be in SHOP_ORIGINS.

const API = 'https://sale.example';

/** Buys, and waits for the order. The key is kept until the purchase has ended: a reload or a second click is the same purchase. */
export async function buy(saleId, token, quantity = 1) {
  const kept = `purchase-${saleId}`;
  const key = (sessionStorage[kept] ??= crypto.randomUUID());
  const purchases = `${API}/v1/sales/${saleId}/purchases`;
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', 'Idempotency-Key': key };
  await untilAnswered(() => fetch(purchases, { method: 'POST', headers, body: JSON.stringify({ quantity }) }));
  for (;;) {
    const purchase = await untilAnswered(() => fetch(`${purchases}/${key}?wait=25`, { headers }));
    if (purchase.status === 'ordered' || purchase.status === 'failed') {
      if (sessionStorage[kept] === key) delete sessionStorage[kept]; // the next click is another purchase
      return purchase; // with orderId, or with the reason of the failure
    }
    await pause(1000); // `pending`, or `unknown` from an overloaded api
  }
}

/** Retries lost and temporary answers, and never before the server asks for it. */
async function untilAnswered(ask) {
  for (let pauseMs = 500; ; pauseMs = Math.min(10_000, pauseMs * 2)) {
    const answer = await ask().catch(() => null);
    if (answer?.ok) return answer.json();
    const nothing = { retryable: !answer || answer.status >= 500, detail: `answer ${answer?.status}` }; // from a proxy, or no answer
    const problem = (await answer?.json().catch(() => null)) ?? nothing;
    if (!problem.retryable) throw Object.assign(new Error(problem.detail), problem); // problem.code says why
    await pause(Math.max(pauseMs, problem.retryAfterMs ?? 0));
  }
}

/** Waits up to half as long again, so that pages do not return together. */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms * (1 + Math.random() / 2)));
