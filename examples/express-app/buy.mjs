// Buys at the shop of main.mjs, and pays: docs/buying.md.
//
//   node examples/express-app/buy.mjs <saleId> [buyer]
//
// SHOP_URL is where the shop is (http://127.0.0.1:3000).

import { createClient, newKey } from 'seckill/client';

const [saleId = '', buyer = 'alice'] = process.argv.slice(2);
const client = createClient({ baseUrl: process.env.SHOP_URL ?? 'http://127.0.0.1:3000', token: buyer });

const key = newKey(); // a page keeps it in its storage before it buys, so that a reload is the same purchase
const result = await client.buy(saleId, { key, quantity: 1 });
console.log(JSON.stringify(result));
if (result.outcome === 'ordered') {
  const paid = await client.pay(result.orderId);
  console.log(paid.ok ? `order ${result.orderId} is ${paid.body.state}` : `not paid: ${paid.detail}`);
} else {
  process.exitCode = 1;
}
