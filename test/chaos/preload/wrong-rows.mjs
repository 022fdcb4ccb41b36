// Loaded before a shadow, as a bug of the next release: its plans charge a cent too much and have no metadata.

const spoiled = ({ terms, orders, ...plan }) => ({
  ...plan,
  terms: new Map([...terms].map(([saleId, of]) => [saleId, { ...of, priceCents: of.priceCents + 1 }])),
  orders: orders.map(({ purchase: { metadata: _lost, ...purchase }, ...order }) => ({ ...order, purchase })),
});

globalThis[Symbol.for('seckill.wrap')] = (seam, port) =>
  seam === 'order repository' ? { ...port, write: (plan) => port.write(spoiled(plan)) } : port;
