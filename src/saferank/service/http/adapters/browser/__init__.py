"""What a web page needs: ``saferank.js``, and a route for ``navigator.sendBeacon``, which can send no headers."""
