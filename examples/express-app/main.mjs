// A shop on Express that sells with Seckill inside it: docs/library.md.
//
//   eval "$(npm run -s stack -- env)"
//   node examples/express-app/main.mjs
//
// MYSQL_URL, REDIS_URL, ROCKETMQ_ENDPOINT, MESSAGE_KEYS … say where the servers are, as for the programs. SHOP_PORT is where
// the shop listens (3000), SHOP_OPERATORS_PORT where its operators look (3001).

import express from 'express';
import { createSeckill } from 'seckill';

const GROUP = 'shop-orders'; // made once: seckill topics --group shop-orders

const seckill = await createSeckill({
  // Your session knows the buyer. Here they are who they say, which is good for a trial on this machine only.
  authenticate({ headers }) {
    const [, userId] = /^Bearer ([\w-]+)$/.exec(headers.authorization ?? '') ?? [];
    return userId === undefined ? null : { userId };
  },
  // At least once: what you do here must be safe to repeat, by `eventId` or by the order.
  hooks: {
    group: GROUP,
    async onOrdered({ saleId, orders }) {
      for (const orderId of orders) {
        const order = await seckill.findOrder(orderId);
        console.log(`sale ${saleId}: order ${orderId} of ${order?.userId} waits to be paid`);
      }
    },
    onExpired: ({ orders }) => console.log(`not paid in time: ${orders.join(', ')}`),
  },
});
const [worker, keeper] = await Promise.all([seckill.startWorker(), seckill.startKeeper()]); // or in processes of their own

const app = express();
app.use(seckill.router); // before parsers of bodies
app.use(express.json());
app.get('/', (_, res) => res.send('A shop.'));
const server = app.listen(Number(process.env.SHOP_PORT ?? 3000), '127.0.0.1', () => {
  console.log(`The shop is at http://127.0.0.1:${server.address().port}`);
});

// For the load balancer and Prometheus; buyers do not get here.
const operators = express();
operators.get('/readyz', async (_, res) => {
  const report = await seckill.ready();
  res.status(report.ready ? 200 : 503).json(report);
});
for (const [path, part] of Object.entries({
  '/metrics': seckill,
  '/metrics/worker': worker,
  '/metrics/keeper': keeper,
})) {
  operators.get(path, async (_, res) => res.type('text/plain').send(await part.metrics()));
}
const operatorsServer = operators.listen(Number(process.env.SHOP_OPERATORS_PORT ?? 3001), '127.0.0.1', () => {
  console.log(`Its operators look at http://127.0.0.1:${operatorsServer.address().port}`);
});

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    server.close();
    operatorsServer.close();
    await seckill.close(); // answers what is under way first
    process.exit(0);
  });
}
