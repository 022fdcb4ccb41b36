import { deadLetterPaths } from './dead-letters.js';
import { operationPaths } from './operations.js';
import { orderPaths } from './orders.js';
import { purchasePaths } from './purchases.js';
import { queuePaths } from './queue.js';
import { reconcilePaths } from './reconcile.js';
import { refundPaths } from './refunds.js';
import { rulePaths } from './rules.js';
import { salePaths } from './sales.js';
import { schemas } from './schemas.js';
import { switchPaths } from './switches.js';

/** The API in OpenAPI 3.1. A guard test holds its paths against the mounted routes. */
export const OPENAPI = {
  openapi: '3.1.0',
  info: { title: 'Seckill', version: '1', description: 'A flash sale: sells exactly its stock.' },
  paths: {
    ...purchasePaths,
    ...queuePaths,
    ...salePaths,
    ...orderPaths,
    ...deadLetterPaths,
    ...reconcilePaths,
    ...refundPaths,
    ...rulePaths,
    ...switchPaths,
    ...operationPaths,
  },
  components: { schemas, securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } } },
};
