export { createWebhookMetrics, planningWebhooks, webhookJobs, type WebhookMetrics } from './jobs.js';
export { webhookRoutes } from './routes.js';
export { openSender, openWebhooks, type WebhookServices } from './services.js';
