export { webhookJobs } from './jobs.js';
export { createWebhookMetrics, type WebhookMetrics } from './metrics.js';
export { webhookRoutes } from './routes.js';
export { openSender, openWebhooks, planningWebhooks, type WebhookServices } from './services.js';
