"""The page of a gateway: HTML, style sheets and modules of JavaScript, as a browser gets them, without a build step."""
