/** Routes of device management: webhooks of its servers, enrolment profiles, and devices for operators. */
import type { FastifyPluginAsync } from 'fastify';
import type { DeviceManagement } from '../../devices/device-management.js';
import type { RouteAccess } from '../plugins/guards.js';
import { addDeviceOperations, addDevices } from './devices.js';

interface DeviceRoutesDeps {
  readonly access: RouteAccess;
  readonly devices: DeviceManagement;
  readonly now: () => number;
}

/** Adds no route where no devices are managed. */
export const deviceRoutes: FastifyPluginAsync<DeviceRoutesDeps> = async (server, { access, devices, now }) => {
  if (devices.managed !== null) addDevices(server, devices.managed, access.limits, now);
  addDeviceOperations(server, access.adminGuard, devices);
};
