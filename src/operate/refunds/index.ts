export { refundRoutes } from './routes.js';
export { openRefunds, type RefundServices } from './services.js';
