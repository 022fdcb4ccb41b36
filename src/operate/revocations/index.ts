export { revocationRoutes, type RevocationServices } from './routes.js';
