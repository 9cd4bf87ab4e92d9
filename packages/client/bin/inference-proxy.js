#!/usr/bin/env node
import '../dist/proxy/main.js';
